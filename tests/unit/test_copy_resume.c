/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that go on after a restart: src/backends/copying.c, file_copy.c and src/volumes/copy_cursor.c. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/files.h"
#include "check.h"
#include "message/message_bytes.h"
#include "store_ends.h"
#include "volumes/copy_cursor.h"

#define MIB (UINT64_C(1) << 20)
#define IMAGE_BYTES (64 * MIB)
#define SAVE_BYTES (16 * MIB)

static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};
static const struct data image_from = {"from", KIND_IMAGE, ROLE_VOLUME};
static const struct data image_to = {"to", KIND_IMAGE, ROLE_VOLUME};
static const struct data tree_from = {"from-tree", KIND_TREE, ROLE_VOLUME};
static const struct data tree_to = {"to-tree", KIND_TREE, ROLE_VOLUME};

/* A copy, and a process that would have made it. */
struct attempt {
    uint64_t first_done; /* of the first report */
    bool has_reported;
    uint64_t done;
    uint64_t stops_at; /* bytes; 0: never */
    unsigned saves, forgotten;
    bool has_position;
    struct copy_position position; /* as it is saved last */
};

static struct attempt *running;
static uint64_t synced_done; /* what was done at the last fsync */

/* In place of libc's: whoever asks for durability is seen here. */
int
fsync(int fd)
{
    synced_done = running ? running->done : 0;
    return (int)syscall(SYS_fsync, fd);
}

static void
report(void *context, uint64_t done, uint64_t total)
{
    struct attempt *attempt = context;
    if (!attempt->has_reported)
        attempt->first_done = done;
    attempt->has_reported = true;
    attempt->done = done;
    CHECK(done <= total);
}

static bool
is_stopped(void *context)
{
    const struct attempt *attempt = context;
    return attempt->stops_at && attempt->done >= attempt->stops_at;
}

static struct error *
save(void *context, const struct copy_position *position)
{
    struct attempt *attempt = context;
    attempt->has_position = position;
    attempt->forgotten += !position;
    if (!position)
        return NULL;
    attempt->position = *position;
    attempt->saves++;
    CHECK(position->offset <= synced_done); /* the image has no holes here */
    return NULL;
}

static struct error *
copy(struct backend *backend, const struct data *from, const struct data *to,
     struct attempt *attempt, const struct attempt *before)
{
    struct progress progress = {.report = report,
                                .cancelled = is_stopped,
                                .context = attempt,
                                .save = save,
                                .save_bytes = SAVE_BYTES,
                                .position =
                                    before && before->has_position ? &before->position : NULL};
    synced_done = 0;
    running = attempt;
    struct error *error = backend_copy(backend, from, to, &(struct data_settings){0}, &progress);
    running = NULL;
    return error;
}

static void
must_copy(struct backend *backend, const struct data *from, const struct data *to,
          struct attempt *attempt, const struct attempt *before)
{
    struct error *error = copy(backend, from, to, attempt, before);
    CHECK_TEXT(error ? error->message : "", "");
    error_free(error);
}

/* The first process: it ends at this amount. */
static struct attempt
begin(struct backend *backend, const struct data *from, const struct data *to, uint64_t stops_at)
{
    struct attempt attempt = {.stops_at = stops_at};
    struct error *error = copy(backend, from, to, &attempt, NULL);
    CHECK(error && error->code == CODE_CANCELLED);
    error_free(error);
    return attempt;
}

/* ---- the data ---- */

struct bench {
    char directory[64];
    char making[128]; /* the image that is not finished */
    struct backend *backend;
};

static void
bench_open(struct bench *bench)
{
    snprintf(bench->directory, sizeof bench->directory, "/tmp/skycap-resume-XXXXXX");
    CHECK(mkdtemp(bench->directory) != NULL);
    CHECK_OK(backend_open("dir", &(struct backend_options){bench->directory, &quiet, 0},
                          &bench->backend));
    snprintf(bench->making, sizeof bench->making, "%s/making/volume-image-to/disk/image",
             bench->directory);
}

static void
bench_close(struct bench *bench)
{
    char command[128];
    backend_close(bench->backend);
    snprintf(command, sizeof command, "rm -rf '%s'", bench->directory);
    CHECK(system(command) == 0);
}

static void
path_of(const struct bench *bench, const struct data *data, char path[4096])
{
    CHECK_OK(backend_path(bench->backend, data, path, 4096));
}

/* Every 4 KiB begin with a number of their own. */
static void
make_image(const struct bench *bench)
{
    char path[4096];
    uint64_t block[512];
    CHECK_OK(backend_create(bench->backend, &image_from,
                            &(struct data_settings){.size_bytes = IMAGE_BYTES}));
    path_of(bench, &image_from, path);
    int fd AUTO(files_close) = open(path, O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        block[i] = i + 1;
    for (uint64_t at = 0; at < IMAGE_BYTES; at += sizeof block) {
        block[0] = at + 1;
        CHECK(pwrite(fd, block, sizeof block, (off_t)at) == sizeof block);
    }
    (void)syscall(SYS_fsync, fd); /* before that it occupies nothing, and nothing is done */
}

static bool
is_copied(const struct bench *bench)
{
    char from[4096], to[4096], command[9000];
    path_of(bench, &image_from, from);
    path_of(bench, &image_to, to);
    snprintf(command, sizeof command, "cmp '%s' '%s'", from, to);
    return system(command) == 0;
}

/* Not on file systems that share extents: there a copy takes no time. */
static bool
can_share(const struct bench *bench)
{
    return bench->backend->cuts_images;
}

/* What a power cut may take: everything that was not made durable before the last save. */
static void
cut_power(const struct bench *bench, const struct attempt *attempt)
{
    char zeros[4096] = {0};
    int fd AUTO(files_close) = open(bench->making, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    for (uint64_t at = attempt->position.offset; at < IMAGE_BYTES; at += sizeof zeros)
        CHECK(pwrite(fd, zeros, sizeof zeros, (off_t)at) == sizeof zeros);
}

/* ---- facts ---- */

static void
an_image_goes_on_where_it_was_durable(struct bench *bench)
{
    struct attempt second = {0};
    struct attempt first = begin(bench->backend, &image_from, &image_to, 40 * MIB);
    CHECK_NUMBER(first.saves, 2);
    CHECK_NUMBER(first.position.offset, 32 * MIB);
    cut_power(bench, &first);
    must_copy(bench->backend, &image_from, &image_to, &second, &first);
    CHECK(second.first_done >= 32 * MIB);
    CHECK_NUMBER(second.forgotten, 0);
    CHECK(is_copied(bench));
    CHECK_OK(backend_remove(bench->backend, &image_to));
}

static void
what_was_never_durable_is_copied_again(struct bench *bench)
{
    struct attempt second = {0};
    struct attempt first = begin(bench->backend, &image_from, &image_to, 8 * MIB);
    CHECK(!first.has_position);
    must_copy(bench->backend, &image_from, &image_to, &second, &first);
    CHECK(second.first_done <= 8 * MIB);
    CHECK(is_copied(bench));
    CHECK_OK(backend_remove(bench->backend, &image_to));
}

static void
a_source_that_has_changed_is_copied_from_the_beginning(struct bench *bench)
{
    char path[4096];
    struct attempt second = {0};
    struct attempt first = begin(bench->backend, &image_from, &image_to, 40 * MIB);
    path_of(bench, &image_from, path);
    int fd AUTO(files_close) = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(pwrite(fd, "other", 5, 0) == 5);
    must_copy(bench->backend, &image_from, &image_to, &second, &first);
    CHECK(second.first_done <= 8 * MIB);
    CHECK_NUMBER(second.forgotten, 1);
    CHECK(is_copied(bench));
    CHECK_OK(backend_remove(bench->backend, &image_to));
}

/* The position of data that is gone must be forgotten before other data is made. */
static void
without_the_unfinished_image_a_copy_begins_anew(struct bench *bench)
{
    struct attempt second = {0};
    struct attempt first = begin(bench->backend, &image_from, &image_to, 40 * MIB);
    CHECK(unlink(bench->making) == 0);
    must_copy(bench->backend, &image_from, &image_to, &second, &first);
    CHECK_NUMBER(second.forgotten, 1);
    CHECK(second.first_done <= 8 * MIB);
    CHECK(is_copied(bench));
    CHECK_OK(backend_remove(bench->backend, &image_to));
}

static void
what_cannot_be_opened_is_made_anew(struct bench *bench)
{
    struct attempt second = {0};
    struct attempt first = begin(bench->backend, &image_from, &image_to, 40 * MIB);
    CHECK(unlink(bench->making) == 0 && mkdir(bench->making, 0700) == 0);
    must_copy(bench->backend, &image_from, &image_to, &second, &first);
    CHECK_NUMBER(second.forgotten, 1);
    CHECK(is_copied(bench));
    CHECK_OK(backend_remove(bench->backend, &image_to));
}

static void
who_saves_nothing_leaves_nothing(struct bench *bench)
{
    struct attempt attempt = {.stops_at = 40 * MIB};
    struct progress progress = {.report = report, .cancelled = is_stopped, .context = &attempt};
    struct error *error =
        backend_copy(bench->backend, &image_from, &image_to, &(struct data_settings){0}, &progress);
    CHECK(error && error->code == CODE_CANCELLED);
    error_free(error);
    CHECK(access(bench->making, F_OK) != 0);
}

static void
print_file(char *out, size_t size, const char *directory, unsigned number)
{
    snprintf(out, size, "%s/%u", directory, number);
}

static void
make_tree(const struct bench *bench, unsigned count)
{
    char path[4096], file[4200], bytes[65536];
    CHECK_OK(backend_create(bench->backend, &tree_from, &(struct data_settings){0}));
    path_of(bench, &tree_from, path);
    memset(bytes, 'x', sizeof bytes);
    for (unsigned i = 0; i < count; i++) {
        print_file(file, sizeof file, path, i);
        int fd AUTO(files_close) = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
        CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes);
        (void)syscall(SYS_fsync, fd);
    }
}

/* How many files there are, and their inode numbers. */
static unsigned
find_inodes(const char *directory, ino_t *inodes, unsigned count)
{
    char file[4200];
    struct stat status;
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        print_file(file, sizeof file, directory, i);
        inodes[i] = stat(file, &status) == 0 && status.st_size == 65536 ? status.st_ino : 0;
        found += inodes[i] != 0;
    }
    return found;
}

static void
a_tree_keeps_the_files_that_are_whole(struct bench *bench)
{
    enum { COUNT = 32 };
    char making[128], path[4096];
    ino_t before[COUNT], after[COUNT];
    struct attempt second = {0};
    unsigned kept = 0;
    make_tree(bench, COUNT);
    struct attempt first = begin(bench->backend, &tree_from, &tree_to, COUNT / 2 * 65536);
    CHECK(first.has_position);
    snprintf(making, sizeof making, "%s/making/volume-tree-to-tree/tree", bench->directory);
    unsigned whole = find_inodes(making, before, COUNT);
    CHECK(whole >= COUNT / 4 && whole < COUNT);
    must_copy(bench->backend, &tree_from, &tree_to, &second, &first);
    path_of(bench, &tree_to, path);
    CHECK_NUMBER(find_inodes(path, after, COUNT), COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        kept += before[i] && before[i] == after[i];
    CHECK(kept + 1 >= whole); /* the last one may have had no time yet */
}

/* ---- the cursor ---- */

static bool
goes_on(const char *boot_id, const struct data *from, size_t size)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct engine engine = {.boot_id = boot_id};
    struct copy_cursor cursor = {.engine = &engine};
    Skycap__Records__CopyCursor record = SKYCAP__RECORDS__COPY_CURSOR__INIT;
    operation_record operation;
    record.boot_id = (char *)"this";
    record.offset = 12;
    skycap__records__operation_record__init(&operation);
    operation.cursor.data = message_bytes_pack(&record.base, &arena, &operation.cursor.len);
    operation.cursor.len = size < operation.cursor.len ? size : operation.cursor.len;
    copy_cursor_read(&cursor, &operation, from);
    CHECK(!cursor.has_position || cursor.position.offset == 12);
    return cursor.has_position;
}

static void
only_images_of_snapshots_go_on_in_another_boot(void)
{
    struct data image = {"i", KIND_IMAGE, ROLE_SNAPSHOT};
    struct data snapshot = {"s", KIND_TREE, ROLE_SNAPSHOT};
    CHECK(goes_on("this", &snapshot, SIZE_MAX));
    CHECK(!goes_on("other", &snapshot, SIZE_MAX));
    CHECK(!goes_on("", &snapshot, SIZE_MAX));
    CHECK(goes_on("other", &image, SIZE_MAX));
    CHECK(goes_on("this", &image_from, SIZE_MAX));
    CHECK(!goes_on("other", &image_from, SIZE_MAX));
    CHECK(!goes_on("this", &image_from, 0));
    CHECK(!goes_on("this", &image_from, 3));
}

/* While nothing ran, files of a volume may have been renamed or removed. */
static void
a_tree_that_is_written_to_saves_nothing(void)
{
    struct engine engine = {.boot_id = "this"};
    struct copy_cursor cursor = {.engine = &engine, .has_position = true};
    struct progress progress = {0};
    CHECK(!copy_cursor_progress(&cursor, &tree_from, &progress).save);
    CHECK(!copy_cursor_progress(&cursor, &tree_from, &progress).position);
    CHECK(copy_cursor_progress(&cursor, &image_from, &progress).save != NULL);
    CHECK(copy_cursor_progress(&cursor, &image_from, &progress).position != NULL);
}

int
main(void)
{
    struct bench bench;
    only_images_of_snapshots_go_on_in_another_boot();
    a_tree_that_is_written_to_saves_nothing();
    bench_open(&bench);
    if (!can_share(&bench)) {
        make_image(&bench);
        an_image_goes_on_where_it_was_durable(&bench);
        what_was_never_durable_is_copied_again(&bench);
        a_source_that_has_changed_is_copied_from_the_beginning(&bench);
        without_the_unfinished_image_a_copy_begins_anew(&bench);
        what_cannot_be_opened_is_made_anew(&bench);
        who_saves_nothing_leaves_nothing(&bench);
        a_tree_keeps_the_files_that_are_whole(&bench);
    }
    bench_close(&bench);
    return check_report("test_copy_resume");
}
