/* SPDX-License-Identifier: Apache-2.0 */
/* Trees and images go into a repository and come back as they were. */
#include <sys/stat.h>
#include <sys/xattr.h>

#include "exports/chunker.h"
#include "exports_ends.h"

#define MAKE_TREE                                                                                  \
    "cd \"$1\"; mkdir -p a/b/c d empty; for i in $(seq 300); do echo \"file $i\" > a/f$i; done; "  \
    "head -c 3000000 /dev/urandom > a/b/large; head -c 131072 /dev/zero > a/b/zeros; "             \
    "truncate -s 5M a/b/sparse; echo middle | dd of=a/b/sparse bs=1 seek=2000000 conv=notrunc "    \
    "status=none; ln a/b/large d/second; ln a/f1 d/f1; ln -s ../nowhere d/link; mkfifo d/fifo; "   \
    "touch -d 2001-02-03T04:05:06.789 a/f2; chmod 4751 a/f3; : > a/nothing; "                      \
    "mkdir 'a b'; echo x > 'a b/-n'; echo y > \"$(printf 'a b/\\377')\"; chmod 1700 d; "           \
    "touch -d 1999-01-01 empty"

static void
check_chunker(void)
{
    uint8_t secret[CHUNKER_SECRET] = "the secret of a repository";
    struct chunker chunker, other;
    size_t size = 40u << 20;
    uint8_t *bytes AUTO(memory_cleanup) = memory_new(size);
    fill_chunk(1, bytes, size);
    chunker_init(&chunker, secret);
    secret[0]++;
    chunker_init(&other, secret);
    unsigned count = 0, same = 0;
    for (size_t at = 0; at < size; count++) {
        size_t cut = chunker_cut(&chunker, bytes + at, size - at);
        CHECK(cut <= CHUNKER_MOST && (cut >= CHUNKER_LEAST || at + cut == size));
        CHECK_NUMBER(chunker_cut(&chunker, bytes + at, size - at), cut);
        same += chunker_cut(&other, bytes + at, size - at) == cut;
        at += cut;
    }
    CHECK(count >= 20 && count <= 80);
    CHECK(same < 5);
    /* Behind an insertion the chunks are as before. */
    size_t at = chunker_cut(&chunker, bytes, size), shifted = 1;
    while (shifted < at)
        shifted += chunker_cut(&chunker, bytes + shifted, size - shifted);
    for (unsigned i = 0; i < 30 && at != shifted; i++) {
        if (at < shifted)
            at += chunker_cut(&chunker, bytes + at, size - at);
        else
            shifted += chunker_cut(&chunker, bytes + shifted, size - shifted);
    }
    CHECK_NUMBER(at, shifted);
}

static void
check_keys(void)
{
    static const char *const order[][2] = {{"", ""},     {"", "a"},   {"", "b"},    {"a", ""},
                                           {"a", "x"},   {"a/b", ""}, {"a/b", "x"}, {"a/c", "a"},
                                           {"a b", "x"}, {"a.", "x"}, {"b", ""}};
    struct buffer before AUTO(buffer_clear) = {0}, key AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        char directory[TREE_PATH_MAX + 1], name[TREE_NAME_MAX + 1];
        tree_entry_key(&key, order[i][0], order[i][1]);
        CHECK(!i || tree_entry_compare(before.bytes, before.size, key.bytes, key.size) < 0);
        CHECK(tree_entry_read_key(key.bytes, key.size, directory, name));
        CHECK_TEXT(directory, order[i][0]);
        CHECK_TEXT(name, order[i][1]);
        tree_entry_key(&before, order[i][0], order[i][1]);
    }
    static const char *const inside[] = {"", "a", "\377", "\377\377/x"};
    for (size_t i = 0; i < COUNT_OF(inside); i++) {
        tree_entry_key(&key, inside[i], "x");
        tree_entry_end_key(&before, "");
        CHECK(tree_entry_compare(key.bytes, key.size, before.bytes, before.size) < 0);
    }
    static const char *const bad[] = {"/a", "a/", "a//b", ".", "..", "a/../b", "a/."};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!tree_entry_is_path(bad[i], strlen(bad[i])));
    CHECK(tree_entry_is_path("a/..b/.c", 8));
}

static const char *
attribute_of(const char *directory, const char *name)
{
    static char value[64];
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    ssize_t size = getxattr(path, "user.color", value, sizeof value - 1);
    value[size < 0 ? 0 : size] = 0;
    return value;
}

static void
set_attribute(const char *directory, const char *name, const char *value)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    CHECK_NUMBER(setxattr(path, "user.color", value, strlen(value), 0), 0);
}

static void
check_tree(struct ends *ends)
{
    char from[96], to[96];
    struct tree_export_result first, second;
    snprintf(from, sizeof from, "%s/from", ends->directory);
    snprintf(to, sizeof to, "%s/to", ends->directory);
    CHECK(!mkdir(from, 0755) && !mkdir(to, 0700));
    CHECK_NUMBER(run_shell(MAKE_TREE, from, to), 0);
    if (geteuid() == 0)
        CHECK_NUMBER(run_shell("cd \"$1\"; mknod d/null c 1 3; chown 12:34 a/f4; chown -h 5:6 "
                               "d/link",
                               from, to),
                     0);
    set_attribute(from, "a/f5", "blue");
    set_attribute(from, "d", "green");
    CHECK(went_well(export_tree(ends, from, NULL, &first)));
    CHECK(went_well(import_tree(ends, &first.root, to)));
    CHECK_TEXT(attribute_of(to, "a/f5"), "blue");
    CHECK_TEXT(attribute_of(to, "d"), "green");
    CHECK_NUMBER(run_shell(COMPARE_TREES, from, to), 0);
    CHECK_NUMBER(run_shell("test $(stat -c %b \"$2/a/b/sparse\") -lt 1000; test "
                           "\"$(stat -c %i \"$2/a/f1\")\" = \"$(stat -c %i \"$2/d/f1\")\"",
                           from, to),
                 0);
    CHECK(first.sum.bytes >= 8000000 && first.bytes_read < 8000000);
    /* The same tree gives the same manifest. A second import over the first one, too. */
    CHECK(went_well(export_tree(ends, from, NULL, &second)));
    CHECK(!memcmp(&first.root, &second.root, sizeof first.root));
    CHECK(went_well(import_tree(ends, &second.root, to)));
    CHECK_NUMBER(run_shell(COMPARE_TREES, from, to), 0);
}

static struct error *
save_and_stop(void *context, const struct repository_id *saved)
{
    *(struct repository_id *)context = *saved;
    return error_new(CODE_CANCELLED, "that is enough");
}

static struct error *
export_part(struct ends *ends, const char *path, const struct repository_id *from,
            struct repository_id *saved, struct tree_export_result *out)
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    struct error *error = repository_writer_open(ends->repository, &writer);
    if (error)
        return error;
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct tree_export_options options = {.repository = ends->repository,
                                          .chunks = writer,
                                          .root = root,
                                          .work_directory = ends->directory,
                                          .progress = &no_progress,
                                          .saved = from,
                                          .save = saved ? save_and_stop : NULL,
                                          .context = saved};
    error = tree_export_run(&options, out);
    close(root);
    return error ? error : repository_writer_flush(writer);
}

/* An export that goes on in a directory with any name has the rest of the tree, too. */
static void
check_resumed_tree(struct ends *ends)
{
    char from[96], to[96];
    struct repository_id saved = {0};
    struct tree_export_result result;
    snprintf(from, sizeof from, "%s/half", ends->directory);
    snprintf(to, sizeof to, "%s/whole", ends->directory);
    CHECK(!mkdir(from, 0755) && !mkdir(to, 0700));
    CHECK_NUMBER(
        run_shell("cd \"$1\"; mkdir a \"$(printf '\\377\\377')\"; cd \"$(printf '\\377\\377')\"; "
                  "truncate -s 300M first; echo second > second",
                  from, to),
        0);
    struct error *error = export_part(ends, from, NULL, &saved, &result);
    CHECK(error && error->code == CODE_CANCELLED);
    error_free(error);
    CHECK(went_well(export_part(ends, from, &saved, NULL, &result)));
    CHECK(went_well(import_tree(ends, &result.root, to)));
    CHECK_NUMBER(run_shell("cmp \"$1\"/*/second \"$2\"/*/second; test -d \"$2/a\"", from, to), 0);
}

static struct error *
whole_extent(void *context, uint64_t offset, const struct extent_sink *sink)
{
    uint64_t size = *(uint64_t *)context;
    struct extent extent = {offset, size - offset};
    return size > offset ? sink->take(sink->context, &extent) : NULL;
}

static struct error *
one_extent(void *context, uint64_t offset, const struct extent_sink *sink)
{
    (void)context;
    struct extent extent = {3500000, 10};
    return offset <= extent.offset ? sink->take(sink->context, &extent) : NULL;
}

static struct error *
export_image(struct ends *ends, int fd, uint64_t size, const struct image_base *base,
             struct image_export_result *out)
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    struct error *error = repository_writer_open(ends->repository, &writer);
    struct image_export_options options = {.repository = ends->repository,
                                           .chunks = writer,
                                           .fd = fd,
                                           .size = size,
                                           .progress = &no_progress,
                                           .base = base,
                                           .extents = base ? one_extent : whole_extent,
                                           .context = &size};
    if (!error)
        error = image_export_run(&options, out);
    return error ? error : repository_writer_flush(writer);
}

static void
check_image(struct ends *ends)
{
    char from[96], to[96];
    struct image_export_result first, second, whole;
    struct image_base base = {.size = 10000384};
    snprintf(from, sizeof from, "%s/from.img", ends->directory);
    snprintf(to, sizeof to, "%s/to.img", ends->directory);
    CHECK_NUMBER(run_shell("head -c 4000000 /dev/urandom > \"$1\"; truncate -s 9000000 \"$1\"; "
                           "head -c 1000384 /dev/urandom >> \"$1\"; truncate -s 10000384 \"$2\"",
                           from, to),
                 0);
    int fd = open(from, O_RDWR | O_CLOEXEC), target = open(to, O_RDWR | O_CLOEXEC);
    CHECK(went_well(export_image(ends, fd, base.size, NULL, &first)));
    struct image_import_options import = {.repository = ends->repository,
                                          .root = first.root,
                                          .size = base.size,
                                          .fd = target,
                                          .progress = &no_progress};
    CHECK(went_well(image_import_run(&import)));
    CHECK_NUMBER(run_shell("cmp \"$1\" \"$2\"; test $(stat -c %b \"$2\") -lt 16000", from, to), 0);
    /* Only what has changed is read, and the manifest is that of everything. */
    CHECK(pwrite(fd, "0123456789", 10, 3500000) == 10);
    base.root = first.root;
    CHECK(went_well(export_image(ends, fd, base.size, &base, &second)));
    CHECK(went_well(export_image(ends, fd, base.size, NULL, &whole)));
    CHECK(!memcmp(&second.root, &whole.root, sizeof whole.root));
    CHECK(memcmp(&second.root, &first.root, sizeof first.root) != 0);
    CHECK_NUMBER(second.bytes_read, 1 << 20);
    close(fd);
    close(target);
}

int
main(void)
{
    struct ends ends;
    check_chunker();
    check_keys();
    ends_make(&ends, true);
    check_tree(&ends);
    check_resumed_tree(&ends);
    check_image(&ends);
    ends_clear(&ends);
    return check_report("exports");
}
