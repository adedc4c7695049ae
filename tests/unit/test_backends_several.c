/* SPDX-License-Identifier: Apache-2.0 */
/* Several back ends at once, without root: whose data is whose, copies from one to the other, and how they are opened. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "several_backends.h"

#define NOBODY 65534
#define MIB (1u << 20)

static const struct log quiet = {.level = LOG_ERROR, .fd = 2};
static char directory[64];
static struct backend *both;

static void
check_code(struct error *error, enum code code)
{
    CHECK_TEXT(error_code_name(error ? error->code : CODE_OK), error_code_name(code));
    if (error && code == CODE_OK)
        fprintf(stderr, "    %s\n", error->message);
    error_free(error);
}

static struct data
data_of(enum volume_kind kind, enum data_role role, const char *handle)
{
    struct data data = {.kind = kind, .role = role};
    snprintf(data.handle, sizeof data.handle, "%s", handle);
    return data;
}

static void
open_both(void)
{
    char second[128];
    snprintf(directory, sizeof directory, "/tmp/skycap-several-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    check_code(backend_open("dir", &(struct backend_options){.directory = directory, .log = &quiet},
                            &both),
               CODE_OK);
    snprintf(second, sizeof second, "%s/second", directory);
    add_second(both, second, "memory", true, &quiet);
}

static void
remove_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    CHECK(system(command) == 0);
}

static void
close_both(void)
{
    backend_close(both);
    remove_directory();
}

static bool
is_in_second(const struct data *data)
{
    char path[4096] = "";
    check_code(backend_path(both, data, path, sizeof path), CODE_OK);
    return strstr(path, "/second/") != NULL;
}

/* ---- whose data ---- */

static void
handles_tell_whose_data_it_is(void)
{
    char handle[BACKEND_HANDLE_SIZE] = "abc";
    open_both();
    CHECK(backend_of(both, "abc") == both);
    CHECK(backend_of(both, "") == both);
    CHECK(backend_of(both, "abc-memory") == both->next);
    CHECK(backend_of(both, "memory") == both);
    CHECK(backend_of(both, "abc-memory-x") == both);
    CHECK(backend_of(both, "abc-dir") == both);
    backend_mark_handle(both, both, handle);
    CHECK_TEXT(handle, "abc");
    backend_mark_handle(both, both->next, handle);
    CHECK_TEXT(handle, "abc-memory");
    close_both();
}

static void
one_is_found_by_its_name(void)
{
    struct backend *found = NULL;
    open_both();
    check_code(backend_find(both, "dir", &found), CODE_OK);
    CHECK(found == both);
    check_code(backend_find(both, "memory", &found), CODE_OK);
    CHECK(found == both->next);
    struct error *error = backend_find(both, "btrfs", &found);
    CHECK(error && strstr(error->message, "dir, memory"));
    check_code(error, CODE_INVALID_ARGUMENT);
    CHECK(found == NULL);
    close_both();
}

static struct error *
count_entry(void *context, const struct backend_entry *entry)
{
    CHECK(entry->is_whole);
    ++*(unsigned *)context;
    return NULL;
}

static void
every_function_goes_where_the_handle_says(void)
{
    struct data first = data_of(KIND_TREE, ROLE_VOLUME, "a");
    struct data second = data_of(KIND_TREE, ROLE_VOLUME, "a-memory");
    struct data_settings settings = {0};
    struct data_usage usage;
    char note[16] = "";
    size_t size = 0;
    unsigned count = 0;
    open_both();
    check_code(backend_create(both, &first, &settings), CODE_OK);
    check_code(backend_create(both, &second, &settings), CODE_OK);
    CHECK(!is_in_second(&first));
    CHECK(is_in_second(&second));
    check_code(backend_write_note(both, &first, "one", 3), CODE_OK);
    check_code(backend_write_note(both, &second, "two", 3), CODE_OK);
    check_code(backend_read_note(both, &second, note, sizeof note, &size), CODE_OK);
    CHECK(size == 3 && !memcmp(note, "two", 3));
    check_code(backend_usage(both, &second, &usage), CODE_OK);
    check_code(backend_change(both, &second, &settings), CODE_OK);
    check_code(backend_list(both, count_entry, &count), CODE_OK);
    CHECK_NUMBER(count, 2);
    check_code(backend_sync(both), CODE_OK);
    check_code(backend_remove(both, &second), CODE_OK);
    check_code(backend_path(both, &second, note, sizeof note), CODE_NOT_FOUND);
    CHECK(!is_in_second(&first));
    check_code(backend_remove(both, &first), CODE_OK);
    close_both();
}

/* ---- from one to the other ---- */

static void
put(const struct data *data, const char *file, const char *text)
{
    char path[4200];
    check_code(backend_path(both, data, path, 4096), CODE_OK);
    strcat(path, file);
    int fd = open(path, O_WRONLY | O_CREAT, 0640);
    CHECK(fd >= 0 && pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text));
    close(fd);
}

static void
check_text_in(const struct data *data, const char *file, const char *text, off_t size)
{
    char path[4200], found[64] = "";
    struct stat status = {0};
    check_code(backend_path(both, data, path, 4096), CODE_OK);
    strcat(path, file);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && pread(fd, found, strlen(text), 0) == (ssize_t)strlen(text));
    CHECK(fstat(fd, &status) == 0 && status.st_size == size);
    CHECK_TEXT(found, text);
    close(fd);
}

static void
trees_and_images_are_copied_from_one_to_the_other(void)
{
    struct data tree = data_of(KIND_TREE, ROLE_VOLUME, "tree");
    struct data there = data_of(KIND_TREE, ROLE_VOLUME, "copy-memory");
    struct data back = data_of(KIND_TREE, ROLE_VOLUME, "back");
    struct data image = data_of(KIND_IMAGE, ROLE_VOLUME, "image");
    struct data image_there = data_of(KIND_IMAGE, ROLE_VOLUME, "image-memory");
    struct data image_back = data_of(KIND_IMAGE, ROLE_VOLUME, "image-back");
    open_both();
    check_code(backend_create(both, &tree, &(struct data_settings){0}), CODE_OK);
    check_code(backend_create(both, &image, &(struct data_settings){.size_bytes = MIB}), CODE_OK);
    put(&tree, "/file", "of the tree");
    put(&image, "", "of the image");
    CHECK(!backend_copies_instantly(both, &tree, &there));
    check_code(backend_copy(both, &tree, &there, NULL, NULL), CODE_OK);
    check_code(backend_copy(both, &image, &image_there, NULL, NULL), CODE_OK);
    CHECK(is_in_second(&there) && is_in_second(&image_there));
    check_text_in(&there, "/file", "of the tree", 11);
    check_text_in(&image_there, "", "of the image", MIB);
    put(&there, "/file", "of the copy");
    check_code(backend_copy(both, &there, &back, NULL, NULL), CODE_OK);
    check_code(backend_copy(both, &image_there, &image_back,
                            &(struct data_settings){.size_bytes = 2 * MIB}, NULL),
               CODE_OK);
    check_text_in(&back, "/file", "of the copy", 11);
    check_text_in(&tree, "/file", "of the tree", 11);
    check_text_in(&image_back, "", "of the image", 2 * MIB);
    close_both();
}

static bool
always(void *context)
{
    (void)context;
    return true;
}

static void
a_copy_that_is_cancelled_leaves_nothing(void)
{
    struct data tree = data_of(KIND_TREE, ROLE_VOLUME, "tree");
    struct data there = data_of(KIND_TREE, ROLE_VOLUME, "copy-memory");
    struct progress progress = {.cancelled = always};
    char path[4096];
    open_both();
    check_code(backend_create(both, &tree, &(struct data_settings){0}), CODE_OK);
    put(&tree, "/file", "x");
    check_code(backend_copy(both, &tree, &there, NULL, &progress), CODE_CANCELLED);
    check_code(backend_path(both, &there, path, sizeof path), CODE_NOT_FOUND);
    close_both();
}

/* Copies within one are as instant as they are there; from one to the other never. */
static void
only_copies_within_one_can_be_instant(void)
{
    struct data first = data_of(KIND_TREE, ROLE_VOLUME, "a");
    struct data second = data_of(KIND_TREE, ROLE_VOLUME, "a-memory");
    open_both();
    both->copies_are_instant = both->cuts_images = true;
    CHECK(backend_copies_instantly(both, &first, &first));
    CHECK(!backend_copies_instantly(both, &first, &second));
    CHECK(!backend_copies_instantly(both, &second, &first));
    CHECK(!backend_copies_instantly(both, &second, &second));
    CHECK(backend_cuts_images(both, &first, &first));
    CHECK(!backend_cuts_images(both, &first, &second));
    CHECK(!backend_cuts_images(both, &first, NULL));
    struct backend *other = both->next;
    both->next = NULL;
    CHECK(backend_cuts_images(both, &first, NULL));
    both->next = other;
    close_both();
}

static struct error *
cut_nothing(struct backend *backend, const struct data *const *from, const struct data *const *to,
            const struct data_note *notes, size_t count)
{
    (void)from;
    (void)to;
    (void)notes;
    CHECK(backend == both->next);
    CHECK_NUMBER(count, 1);
    return NULL;
}

static void
a_group_is_of_one_back_end(void)
{
    struct data first = data_of(KIND_TREE, ROLE_VOLUME, "a");
    struct data second = data_of(KIND_TREE, ROLE_VOLUME, "a-memory");
    struct data to[] = {data_of(KIND_TREE, ROLE_SNAPSHOT, "s-memory"),
                        data_of(KIND_TREE, ROLE_SNAPSHOT, "s")};
    const struct data *sources[] = {&second, &first};
    const struct data *snapshots[] = {&to[0], &to[1]};
    open_both();
    second_ops.snapshot_group = cut_nothing;
    check_code(backend_snapshot_group(both, sources, snapshots, NULL, 1), CODE_OK);
    check_code(backend_snapshot_group(both, sources, snapshots, NULL, 2), CODE_FAILED_PRECONDITION);
    check_code(backend_snapshot_group(both, sources + 1, snapshots + 1, NULL, 1),
               CODE_UNIMPLEMENTED);
    close_both();
}

/* ---- opening ---- */

static enum code
open_named(const char *first, const char *second)
{
    const char *names[] = {first, second};
    struct backend *backend = NULL;
    struct error *error = backend_open_several(
        names, second ? 2 : 1, &(struct backend_options){.directory = directory, .log = &quiet},
        &backend);
    enum code code = error ? error->code : CODE_OK;
    CHECK(error || !backend->next);
    error_free(error);
    backend_close(backend);
    return code;
}

static bool
is_there(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

/* What could not be opened leaves nothing that would stand in the way of the next start. */
static void
names_that_make_no_sense_are_refused(void)
{
    snprintf(directory, sizeof directory, "/tmp/skycap-several-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    CHECK_NUMBER(open_named("dir", NULL), CODE_OK);
    CHECK(!is_there("backends"));
    CHECK_NUMBER(open_named("dir", "dir"), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(open_named("dir", "auto"), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(open_named("dir", "../dir"), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(open_named("btrfs", "dir"), CODE_FAILED_PRECONDITION);
    CHECK(!is_there("backends"));
    CHECK_NUMBER(open_named("dir", "memory"), CODE_PERMISSION_DENIED); /* without root */
    CHECK(!is_there("backends/memory"));
    CHECK_NUMBER(open_named("auto", NULL), CODE_OK);
    remove_directory();
}

int
main(void)
{
    /* As root it does its work as another user, so that both ways of running it show the same. */
    if (geteuid() == 0)
        CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    handles_tell_whose_data_it_is();
    one_is_found_by_its_name();
    every_function_goes_where_the_handle_says();
    trees_and_images_are_copied_from_one_to_the_other();
    a_copy_that_is_cancelled_leaves_nothing();
    only_copies_within_one_can_be_instant();
    a_group_is_of_one_back_end();
    names_that_make_no_sense_are_refused();
    return check_report("test_backends_several");
}
