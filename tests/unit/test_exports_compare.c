/* SPDX-License-Identifier: Apache-2.0 */
/* What a drill notices in a tree that was restored. */
#include <string.h>

#include "exports/compare.h"
#include "exports_ends.h"

#define MAKE_TREE                                                                                  \
    "mkdir \"$1\" \"$2\"; cd \"$1\"; mkdir a a/b empty; echo one > a/one; echo two > a/two; "      \
    "ln a/one a/b/same; ln a/one z; echo one > a/b/alike; touch -r a/one a/b/alike; "              \
    "ln a/b/alike a/b/alike2; ln -s one a/link; head -c 300000 /dev/urandom > a/large; "           \
    "seq -f a/b/f%g 300 | xargs touch; truncate -s 1M a/hole"

static void
ignore(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
}

/* What is said about the tree after the command has run in it; "" if it is as it was exported. */
static const char *
say(struct ends *ends, const struct tree_export_result *tree, const char *command)
{
    static char message[512];
    char from[96], to[96];
    const struct progress progress = {ignore, is_never_cancelled, NULL, NULL};
    snprintf(from, sizeof from, "%s/from", ends->directory);
    snprintf(to, sizeof to, "%s/to", ends->directory);
    CHECK_NUMBER(run_shell("rm -rf \"$2\"; mkdir \"$2\"", from, to), 0);
    CHECK(went_well(import_tree(ends, &tree->root, to)));
    /* The times of directories would tell as well. */
    char script[1024];
    snprintf(script, sizeof script,
             "cd \"$2\"; %s; find \"$1\" -type d -printf '%%P\\n' | while read -r d; do touch -r "
             "\"$1/$d\" \"$2/$d\"; done",
             command);
    CHECK_NUMBER(run_shell(script, from, to), 0);
    int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct compare_options options = {
        .repository = ends->repository, .root = tree->root, .fd = fd, .progress = &progress};
    struct error *error AUTO(error_cleanup) = compare_tree(&options);
    close(fd);
    CHECK(!error || error->code == CODE_DATA_LOSS);
    snprintf(message, sizeof message, "%s", error ? error->message : "");
    return message;
}

static void
links_are_compared(struct ends *ends, const struct tree_export_result *tree)
{
    CHECK_TEXT(say(ends, tree, "cp -p a/one a/new; mv a/new a/b/same"),
               "the hard links of \"a/b/same\" differ");
    CHECK_TEXT(say(ends, tree, "cp -p z a/new; mv a/new z"), "the hard links of \"a/one\" differ");
    /* Two files that are the same otherwise have become one. */
    CHECK_TEXT(say(ends, tree, "ln -f a/one a/b/alike; ln -f a/one a/b/alike2"),
               "the hard links of \"a/b/alike\" differ");
    CHECK(strstr(say(ends, tree, "ln a/two a/b/more; rm a/b/f1"), "a/two") != NULL);
}

static void
holes_are_compared(struct ends *ends, const struct tree_export_result *tree)
{
    CHECK_TEXT(say(ends, tree,
                   "dd if=/dev/zero of=a/hole bs=1M count=1 conv=notrunc status=none; "
                   "touch -r \"$1/a/hole\" a/hole"),
               "");
    CHECK_TEXT(say(ends, tree,
                   "printf x | dd of=a/hole bs=1 seek=500000 conv=notrunc status=none; "
                   "touch -r \"$1/a/hole\" a/hole"),
               "the contents of \"a/hole\" differ");
}

static void
attributes_are_compared(struct ends *ends, const struct tree_export_result *tree)
{
    char from[96];
    snprintf(from, sizeof from, "%s/from", ends->directory);
    if (run_shell(
            "/usr/bin/python3 -c 'import os, sys; os.setxattr(sys.argv[1], \"user.a\", b\"\"); "
            "os.removexattr(sys.argv[1], \"user.a\")' \"$1/a/two\" 2>&1",
            from, "") != 0)
        return; /* not every file system has them */
    CHECK_TEXT(say(ends, tree,
                   "/usr/bin/python3 -c 'import os; os.setxattr(\"a/two\", \"user.a\", b\"\")'"),
               "the extended attributes of \"a/two\" differ");
}

static void
names_are_compared(struct ends *ends, const struct tree_export_result *tree)
{
    CHECK_TEXT(say(ends, tree, "touch a/b/more"),
               "the directory \"a/b\" has 304 entries, and 303 were exported");
    CHECK_TEXT(say(ends, tree, "mkdir empty/more"),
               "the directory \"empty\" has 1 entries, and 0 were exported");
    CHECK_TEXT(say(ends, tree, "touch more"),
               "the directory \"\" has 4 entries, and 3 were exported");
    CHECK_TEXT(say(ends, tree, "mv a/b/f7 a/b/new"), "\"f7\" is missing in \"a/b\"");
}

static void
device_numbers_are_compared(struct ends *ends)
{
    char from[96];
    struct tree_export_result tree;
    snprintf(from, sizeof from, "%s/from", ends->directory);
    if (run_shell("mknod \"$1/device\" c 1 3 2>&1", from, "") != 0)
        return; /* only root can */
    CHECK(went_well(export_tree(ends, from, NULL, &tree)));
    CHECK_TEXT(say(ends, &tree, "true"), "");
    CHECK_TEXT(
        say(ends, &tree, "rm device; mknod -m 644 device c 1 5; touch -r \"$1/device\" device"),
        "the device numbers of \"/device\" differ");
}

int
main(void)
{
    struct ends ends;
    char from[96], to[96];
    struct tree_export_result tree;
    ends_make(&ends, true);
    snprintf(from, sizeof from, "%s/from", ends.directory);
    snprintf(to, sizeof to, "%s/to", ends.directory);
    CHECK_NUMBER(run_shell(MAKE_TREE, from, to), 0);
    CHECK(went_well(export_tree(&ends, from, NULL, &tree)));
    CHECK_TEXT(say(&ends, &tree, "true"), "");
    links_are_compared(&ends, &tree);
    holes_are_compared(&ends, &tree);
    attributes_are_compared(&ends, &tree);
    names_are_compared(&ends, &tree);
    device_numbers_are_compared(&ends);
    ends_clear(&ends);
    return check_report("exports_compare");
}
