/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend-facts BACK-END DIRECTORY [POOL-MIB]: shows the facts of a back end in a directory.
 * backend-facts devices DIRECTORY: shows those about loop devices and file systems.
 * backend-facts auto DIRECTORY: prints which back end "auto" chooses there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "facts.h"
#include "tests/unit/check.h"

struct scene scene = {.log = {.level = LOG_ERROR, .fd = 2}};

static unsigned passed, failed, skipped;

bool
fact_check(bool is_good, const char *text, const char *file, int line)
{
    int number = errno;
    if (!check_count(is_good, file, line))
        fprintf(stderr, "%s (errno: %s)\n", text, strerror(number));
    return is_good;
}

bool
fact_succeeds(struct error *error, const char *text, const char *file, int line)
{
    bool is_good = check_count(!error, file, line);
    if (!is_good)
        fprintf(stderr, "%s\n    %s: %s\n", text, error_code_name(error->code), error->message);
    error_free(error);
    return is_good;
}

bool
fact_fails(struct error *error, enum code code, const char *text, const char *file, int line)
{
    enum code got = error ? error->code : CODE_OK;
    bool is_good = check_count(got == code, file, line);
    if (!is_good)
        fprintf(stderr, "%s\n    got %s (%s), expected %s\n", text, error_code_name(got),
                error ? error->message : "", error_code_name(code));
    error_free(error);
    return is_good;
}

bool
scene_open(void)
{
    struct backend_options options = {
        .directory = scene.directory,
        .log = &scene.log,
        .pool_bytes = scene.pool_bytes,
        .may_switch_quotas_on = !getenv("LEAVE_QUOTAS_OFF"),
    };
    return SUCCEEDS(backend_open(scene.name, &options, &scene.backend));
}

void
scene_close(void)
{
    backend_close(scene.backend);
    scene.backend = NULL;
}

struct data
make_data(enum data_role role, enum volume_kind kind, const char *handle)
{
    struct data data = {.role = role, .kind = kind};
    snprintf(data.handle, sizeof data.handle, "%s", handle);
    return data;
}

struct error *
create(struct data data, uint64_t size_bytes)
{
    struct data_settings settings = {.size_bytes = size_bytes};
    return backend_create(scene.backend, &data, &settings);
}

struct error *
copy(struct data from, struct data to, uint64_t size_bytes)
{
    struct data_settings settings = {.size_bytes = size_bytes};
    return backend_copy(scene.backend, &from, &to, &settings, NULL);
}

struct error *
drop(struct data data)
{
    return backend_remove(scene.backend, &data);
}

const char *
path_of(struct data data, const char *name)
{
    static _Thread_local char paths[8][4096];
    static _Thread_local unsigned next;
    char *path = paths[next++ % COUNT_OF(paths)];
    struct error *error = backend_path(scene.backend, &data, path, sizeof paths[0]);
    if (error)
        path[0] = 0;
    else if (name)
        snprintf(path + strlen(path), sizeof paths[0] - strlen(path), "/%s", name);
    error_free(error);
    return path;
}

bool
put_file(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool is_good = fd >= 0 && write(fd, bytes, size) == (ssize_t)size;
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
    return is_good;
}

bool
put_text(const char *path, const char *text)
{
    return put_file(path, text, strlen(text));
}

bool
has_text(const char *path, const char *text)
{
    char bytes[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    return size == (ssize_t)strlen(text) && !memcmp(bytes, text, (size_t)size);
}

bool
exists(const char *path)
{
    struct stat status;
    return path[0] && lstat(path, &status) == 0;
}

bool
sync_around(struct data data)
{
    int fd = open(path_of(data, NULL), O_RDONLY | O_CLOEXEC);
    bool is_good = fd >= 0 && syncfs(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_good;
}

uint32_t
random_number(uint32_t below)
{
    static uint64_t state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

bool
fill_random(const char *path, uint64_t offset, size_t size)
{
    uint32_t *words = malloc(size + 4);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (size_t i = 0; words && i <= size / 4; i++)
        words[i] = random_number(UINT32_MAX) | 0x01010101;
    bool is_good = fd >= 0 && words && pwrite(fd, words, size, (off_t)offset) == (ssize_t)size;
    int number = errno;
    if (fd >= 0)
        close(fd);
    free(words);
    errno = number;
    return is_good;
}

bool
is_same_file(const char *a, const char *b)
{
    enum { PART = 256 << 10 };
    char *left = malloc(2 * PART), *right = left + PART;
    int first = open(a, O_RDONLY | O_CLOEXEC), second = open(b, O_RDONLY | O_CLOEXEC);
    bool is_same = left && first >= 0 && second >= 0;
    for (ssize_t size = 1; is_same && size > 0;) {
        size = read(first, left, PART);
        is_same =
            size >= 0 && read(second, right, PART) == size && !memcmp(left, right, (size_t)size);
    }
    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
    free(left);
    return is_same;
}

static void
show(const struct fact *fact)
{
    unsigned failed_before = check_failed, made_before = check_made;
    scene.skipped = scene.not_for_this = NULL;
    fact->show();
    if (check_failed > failed_before) {
        failed++;
        printf("FAILED: %s\n", fact->name);
    } else if (scene.skipped) {
        skipped++;
        printf("# skipped: %s: %s: %s\n", scene.name, fact->name, scene.skipped);
    } else if (scene.not_for_this) {
        printf("-       %s: %s\n", fact->name, scene.not_for_this);
    } else if (check_made == made_before) {
        failed++;
        printf("FAILED: %s: it has checked nothing\n", fact->name);
    } else {
        passed++;
        printf("ok      %s\n", fact->name);
    }
    fflush(stdout);
}

static void
show_all(const struct fact *facts)
{
    const char *only = getenv("FACT");
    for (; facts->name; facts++) {
        if (!only || strstr(facts->name, only))
            show(facts);
    }
}

static int
print_choice(void)
{
    scene.log.level = LOG_WARN; /* why not another */
    if (!scene_open())
        return 1;
    puts(scene.backend->ops->name);
    scene_close();
    return 0;
}

int
main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    scene.name = arguments[1];
    scene.directory = arguments[2];
    scene.pool_bytes = count > 3 ? strtoull(arguments[3], NULL, 10) * MIB : 0;
    if (!strcmp(scene.name, "auto"))
        return print_choice();
    if (!strcmp(scene.name, "devices")) {
        show_all(facts_of_devices);
    } else {
        if (!strcmp(scene.name, "btrfs"))
            show_all(facts_of_pools);
        if (!scene_open())
            return 1;
        show_all(facts_of_life);
        show_all(facts_of_copies);
        show_all(facts_of_properties);
        show_all(facts_of_sizes);
        show_all(facts_of_extents);
        show_all(facts_of_groups);
        show_all(facts_of_nested);
        scene_close();
    }
    printf("# result: %u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
