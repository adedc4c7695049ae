/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/backends: what needs neither root nor a file system of its own. tests/backends has the facts that do.
 *
 * As root it does its work as another user, so that both ways of running it show the same.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/extents.h"
#include "backends/tree.h"
#include "base/files.h"
#include "check.h"

#define NOBODY 65534

static char directory[4096];
static const struct log quiet = {.level = LOG_ERROR, .fd = 2};

static void
check_code(struct error *error, enum code code)
{
    CHECK_TEXT(error_code_name(error ? error->code : CODE_OK), error_code_name(code));
    if (error && code == CODE_OK)
        fprintf(stderr, "    %s\n", error->message);
    error_free(error);
}

static uint32_t
random_number(uint32_t below)
{
    static uint64_t state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

/* ---- extents that are made up ---- */

#define BYTES 2000u

struct made_up {
    struct extent_reader reader; /* first */
    struct extent_run runs[BYTES];
    unsigned run_count;
    unsigned given;
    uint32_t bytes[BYTES]; /* what stands at each place; 0: a hole */
};

/* One to three at a time, so that the walk has to ask often. */
static struct error *
load_made_up(struct extent_reader *reader)
{
    struct made_up *made_up = (struct made_up *)reader;
    unsigned wanted = 1 + random_number(3);
    while (reader->count < wanted && made_up->given < made_up->run_count)
        reader->runs[reader->count++] = made_up->runs[made_up->given++];
    reader->is_done = made_up->given == made_up->run_count;
    return NULL;
}

/* Few places and positions, so that two files often have the same bytes in the same place. */
static void
make_up(struct made_up *made_up, uint64_t size)
{
    memset(made_up, 0, sizeof *made_up);
    made_up->reader.load = load_made_up;
    made_up->reader.size = size;
    for (uint64_t at = random_number(20); at < size;) {
        struct extent_run run = {.offset = at,
                                 .size = 1 + random_number(30),
                                 .place = 1 + random_number(2),
                                 .position = at + random_number(2)};
        for (uint64_t i = at; i < at + run.size && i < size; i++)
            made_up->bytes[i] = (uint32_t)(run.place * 100000 + run.position + (i - at));
        made_up->runs[made_up->run_count++] = run;
        at += run.size + (random_number(2) ? random_number(20) : 0);
    }
}

struct marks {
    bool bytes[BYTES];
    uint64_t end;
    unsigned count;
    bool is_bad;
};

static struct error *
mark(void *context, const struct extent *extent)
{
    struct marks *marks = context;
    if (!extent->size || (marks->count && extent->offset <= marks->end))
        marks->is_bad = true;
    marks->count++;
    marks->end = extent->offset + extent->size;
    for (uint64_t i = extent->offset; i < marks->end && i < BYTES; i++)
        marks->bytes[i] = true;
    return NULL;
}

static void
compared_extents_are_exactly_the_bytes_that_differ(void)
{
    static struct made_up data, base;
    static struct marks marks;
    struct extent_sink sink = {mark, &marks};
    for (int round = 0; round < 2000; round++) {
        uint64_t size = 1 + random_number(BYTES), base_size = 1 + random_number(BYTES);
        uint64_t offset = random_number(3) ? 0 : random_number((uint32_t)size);
        bool with_base = round % 3;
        unsigned wrong = 0;
        make_up(&data, size);
        make_up(&base, base_size);
        memset(&marks, 0, sizeof marks);
        check_code(extents_compare(&data.reader, with_base ? &base.reader : NULL, offset, &sink),
                   CODE_OK);
        for (uint64_t i = 0; i < size; i++) {
            bool expected = data.bytes[i] != (with_base ? base.bytes[i] : 0);
            wrong += marks.bytes[i] != (expected && i >= offset);
        }
        CHECK_NUMBER(wrong, 0);
        CHECK(!marks.is_bad && marks.end <= size);
        if (wrong)
            return;
    }
}

static void
runs_without_a_place_are_equal_to_nothing(void)
{
    static struct made_up data, base;
    static struct marks marks;
    struct extent_sink sink = {mark, &marks};
    data = base = (struct made_up){.reader = {.load = load_made_up, .size = 100}, .run_count = 1};
    data.runs[0] = base.runs[0] = (struct extent_run){.offset = 10, .size = 20, .is_alone = true};
    memset(&marks, 0, sizeof marks);
    check_code(extents_compare(&data.reader, &base.reader, 0, &sink), CODE_OK);
    CHECK_NUMBER(marks.count, 1);
    CHECK(marks.bytes[10] && marks.bytes[29] && !marks.bytes[9] && !marks.bytes[30]);
}

/* ---- files ---- */

static void
nothing_is_opened_outside(void)
{
    int top AUTO(files_close) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(top, "inside", 0755) == 0);
    CHECK(symlinkat("/etc", top, "inside/link") == 0);
    CHECK(symlinkat(".", top, "inside/self") == 0);
    int inside AUTO(files_close) = files_open_directory(top, "inside");
    CHECK(files_open_below(inside, "..", O_RDONLY) < 0 && errno == EXDEV);
    CHECK(files_open_below(inside, "/etc", O_RDONLY) < 0 && errno == EXDEV);
    CHECK(files_open_below(inside, "link/passwd", O_RDONLY) < 0 && errno == ELOOP);
    CHECK(files_open_below(inside, "link", O_RDONLY) < 0 && errno == ELOOP);
    CHECK(files_open_below(inside, "self/link", O_RDONLY) < 0 && errno == ELOOP);
    CHECK(files_open_directory(inside, "link") < 0);
    int itself AUTO(files_close) = files_open_below(inside, ".", O_RDONLY | O_DIRECTORY);
    CHECK(itself >= 0);
    check_code(tree_remove(top, "inside"), CODE_OK);
    check_code(tree_remove(top, "inside"), CODE_OK);
}

static void
files_are_replaced_and_read(void)
{
    int top AUTO(files_close) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char bytes[8];
    size_t size = 0;
    check_code(files_read(top, "small", bytes, sizeof bytes, &size), CODE_NOT_FOUND);
    check_code(files_replace(top, "small", "12345678", 8), CODE_OK);
    check_code(files_replace(top, "small", "abc", 3), CODE_OK);
    check_code(files_read(top, "small", bytes, sizeof bytes, &size), CODE_OK);
    CHECK(size == 3 && !memcmp(bytes, "abc", 3));
    check_code(files_read(top, "small", bytes, 2, &size), CODE_OUT_OF_RANGE);
    CHECK(unlinkat(top, "small", 0) == 0);
}

/* Whatever modes its directories have. */
static void
a_tree_that_its_owner_locked_can_be_removed(void)
{
    int top AUTO(files_close) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(top, "locked", 0755) == 0 && mkdirat(top, "locked/a", 0755) == 0 &&
          mkdirat(top, "locked/a/b", 0755) == 0 && mkdirat(top, "locked/a/b/c", 0755) == 0);
    check_code(files_replace(top, "locked/a/b/c/file", "x", 1), CODE_OK);
    CHECK(fchmodat(top, "locked/a/b/c", 0, 0) == 0 && fchmodat(top, "locked/a/b", 0500, 0) == 0 &&
          fchmodat(top, "locked/a", 0, 0) == 0);
    check_code(tree_remove(top, "locked"), CODE_OK);
    CHECK(faccessat(top, "locked", F_OK, 0) != 0);
}

/* ---- the dir back end, and what backend.c does for all ---- */

static struct data
name(enum data_role role, enum volume_kind kind, const char *handle)
{
    struct data data = {.role = role, .kind = kind};
    snprintf(data.handle, sizeof data.handle, "%s", handle);
    return data;
}

static struct backend *
open_dir(void)
{
    struct backend_options options = {.directory = directory, .log = &quiet};
    struct backend *backend = NULL;
    check_code(backend_open("dir", &options, &backend), CODE_OK);
    return backend;
}

static void
what_a_back_end_cannot_is_unimplemented_and_says_so(void)
{
    static const struct backend_ops nothing = {.name = "nothing"};
    struct backend backend = {.ops = &nothing};
    struct data data = name(ROLE_VOLUME, KIND_TREE, "a");
    const struct data *list[] = {&data};
    struct data_settings settings = {0};
    struct data_usage usage;
    struct backend_capacity capacity;
    char path[64];
    size_t size;
    check_code(backend_create(&backend, &data, &settings), CODE_UNIMPLEMENTED);
    check_code(backend_copy(&backend, &data, &data, &settings, NULL), CODE_UNIMPLEMENTED);
    check_code(backend_snapshot_group(&backend, list, list, NULL, 1), CODE_UNIMPLEMENTED);
    check_code(backend_remove(&backend, &data), CODE_UNIMPLEMENTED);
    check_code(backend_change(&backend, &data, &settings), CODE_UNIMPLEMENTED);
    check_code(backend_usage(&backend, &data, &usage), CODE_UNIMPLEMENTED);
    check_code(backend_capacity(&backend, &capacity), CODE_UNIMPLEMENTED);
    check_code(backend_path(&backend, &data, path, sizeof path), CODE_UNIMPLEMENTED);
    check_code(backend_list(&backend, NULL, NULL), CODE_UNIMPLEMENTED);
    check_code(backend_extents(&backend, &data, NULL, 0, NULL), CODE_UNIMPLEMENTED);
    check_code(backend_write_note(&backend, &data, "", 0), CODE_UNIMPLEMENTED);
    check_code(backend_read_note(&backend, &data, path, 1, &size), CODE_UNIMPLEMENTED);
    struct error *error = backend_list(&backend, NULL, NULL);
    CHECK(strstr(error->message, "nothing") && strstr(error->message, "list"));
    error_free(error);
}

static void
a_volume_lives_without_root(void)
{
    struct backend *backend = open_dir();
    struct data tree = name(ROLE_VOLUME, KIND_TREE, "tree"), copy = tree;
    struct data image = name(ROLE_VOLUME, KIND_IMAGE, "image");
    struct data_settings settings = {.size_bytes = 1 << 20};
    struct data_usage usage;
    char path[4096], file[4200];
    struct stat status;
    if (!backend)
        return;
    strcpy(copy.handle, "copy");
    check_code(backend_create(backend, &tree, &settings), CODE_OK);
    check_code(backend_create(backend, &image, &settings), CODE_OK);
    check_code(backend_path(backend, &tree, path, sizeof path), CODE_OK);
    snprintf(file, sizeof file, "%s/file", path);
    int fd = open(file, O_WRONLY | O_CREAT, 0444);
    CHECK(fd >= 0 && write(fd, "contents", 8) == 8);
    close(fd);
    check_code(backend_copy(backend, &tree, &copy, &settings, NULL), CODE_OK);
    check_code(backend_path(backend, &copy, path, sizeof path), CODE_OK);
    snprintf(file, sizeof file, "%s/file", path);
    CHECK(stat(file, &status) == 0 && status.st_size == 8 && (status.st_mode & 0777) == 0444);
    check_code(backend_path(backend, &image, path, sizeof path), CODE_OK);
    CHECK(stat(path, &status) == 0 && status.st_size == 1 << 20);
    check_code(backend_usage(backend, &image, &usage), CODE_OK);
    CHECK(usage.total_bytes == 1 << 20 && usage.used_bytes == 0);
    check_code(backend_remove(backend, &tree), CODE_OK);
    check_code(backend_remove(backend, &copy), CODE_OK);
    check_code(backend_remove(backend, &image), CODE_OK);
    check_code(backend_path(backend, &copy, path, sizeof path), CODE_NOT_FOUND);
    backend_close(backend);
}

static void
without_root_only_dir_can_be_had(void)
{
    struct backend_options options = {.directory = directory, .log = &quiet};
    struct backend *backend = NULL;
    struct log silent = {.level = LOG_ERROR + 1, .fd = 2};
    char empty[4200];
    check_code(backend_open("memory", &options, &backend), CODE_PERMISSION_DENIED);
    check_code(backend_open("btrfs", &options, &backend), CODE_FAILED_PRECONDITION);
    snprintf(empty, sizeof empty, "%s/empty", directory);
    CHECK(mkdir(empty, 0700) == 0);
    options = (struct backend_options){.directory = empty, .log = &silent};
    check_code(backend_open("btrfs", &options, &backend), CODE_PERMISSION_DENIED);
    check_code(backend_open("auto", &options, &backend), CODE_OK);
    CHECK_TEXT(backend ? backend->ops->name : NULL, "dir");
    backend_close(backend);
    options.directory = "/nonexistent";
    check_code(backend_open("auto", &options, &backend), CODE_NOT_FOUND);
}

/* ---- progress ---- */

struct reports {
    unsigned count;
    uint64_t first_total;
    uint64_t done; /* as last told */
    bool went_back;
};

static void
take_report(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct reports *reports = context;
    reports->went_back |= done_bytes < reports->done;
    reports->done = done_bytes;
    if (!reports->count++)
        reports->first_total = total_bytes;
}

static void
write_small_files(const char *path, unsigned count)
{
    char name[4200];
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/%u", path, i);
        int file AUTO(files_close) = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(write(file, "small", 5) == 5);
        fsync(file); /* before that it occupies nothing */
    }
}

static void
progress_of_small_files_comes_near_its_total(void)
{
    struct backend *backend;
    struct backend_options options = {.directory = directory, .log = &quiet};
    struct data from = {.handle = "small-files"}, to = {.handle = "small-files-2"};
    struct data_settings settings = {0};
    struct reports reports = {0};
    struct progress progress = {.report = take_report, .context = &reports};
    char path[4096];
    check_code(backend_open("dir", &options, &backend), CODE_OK);
    check_code(backend_create(backend, &from, &settings), CODE_OK);
    check_code(backend_path(backend, &from, path, sizeof path), CODE_OK);
    write_small_files(path, 50);
    check_code(backend_copy(backend, &from, &to, &settings, &progress), CODE_OK);
    CHECK(reports.count >= 50);
    CHECK(!reports.went_back);
    CHECK(reports.done >= reports.first_total * 8 / 10);
    CHECK(reports.done <= reports.first_total);
    check_code(backend_remove(backend, &to), CODE_OK);
    check_code(backend_remove(backend, &from), CODE_OK);
    backend_close(backend);
}

static int
remove_any(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

int
main(void)
{
    const char *top = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/skycap-backends-XXXXXX", top ? top : "/tmp");
    CHECK(mkdtemp(directory) != NULL);
    if (geteuid() == 0) {
        CHECK(!top || chmod(top, 0711) == 0);
        CHECK(chown(directory, NOBODY, NOBODY) == 0);
        CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    }
    compared_extents_are_exactly_the_bytes_that_differ();
    runs_without_a_place_are_equal_to_nothing();
    nothing_is_opened_outside();
    files_are_replaced_and_read();
    a_tree_that_its_owner_locked_can_be_removed();
    what_a_back_end_cannot_is_unimplemented_and_says_so();
    a_volume_lives_without_root();
    without_root_only_dir_can_be_had();
    progress_of_small_files_comes_near_its_total();
    nftw(directory, remove_any, 20, FTW_DEPTH | FTW_PHYS);
    return check_report("test_backends");
}
