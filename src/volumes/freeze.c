/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing: see freeze.h.
 *
 * The kernel never thaws by itself, not even when the process that froze is gone. It freezes only
 * when those who are in the midst of a write are done, however long they take, and who waits for
 * that cannot be woken, not even killed. So each file system has a child process that freezes it
 * and thaws it again: when we say so on a socket, when we die (which closes the socket), and when
 * the time is over. A child that waits to freeze when the time is over is abandoned: it thaws as
 * soon as it has frozen. What the child needs is made before the fork; after it there are only
 * system calls, because other threads may hold locks. Should both be killed at once, rows in the
 * store say what is frozen:
 *
 *     frozen/VOLUME    the path where it is mounted
 *
 * Threads instead of children were rejected: a process does not end while one of its threads is in
 * such a wait.
 */
#include "volumes/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/files.h"
#include "base/memory.h"
#include "rpc/loop/timers.h"
#include "volumes/capability.h"
#include "volumes/volume.h"
#include "volumes/volume_use.h"

#define PREFIX "frozen/"

/* A child that need not wait has ended so long after it was told to. */
#define MOMENT_MS 100

/* How a child ends, beside 0. */
#define EXIT_TIME_OVER 1

/* One file system, by what is mounted, and the child that freezes it. */
struct frozen {
    struct frozen *next;
    char *key; /* of its row */
    char *path;
    int fd;
    int line;       /* the child tells how it went, and waits for a byte or its end */
    pid_t child;    /* 0: none */
    bool has_told;  /* it is frozen, or will not be */
    bool was_ended; /* by its time, or by somebody else */
};

struct freeze {
    struct engine *engine;
    int64_t over_ms;
    struct frozen *mounts;
};

static int64_t
now_ms(void)
{
    return (int64_t)(timers_now() / 1000000);
}

static int
ms_until(int64_t time_ms)
{
    int64_t left = time_ms - now_ms();
    return left > 0 ? (int)left : 0;
}

static void
free_frozen(struct frozen *mount)
{
    files_close(&mount->fd);
    files_close(&mount->line);
    free(mount->key);
    free(mount->path);
    free(mount);
}

/* ---- what has to be frozen ---- */

static bool
may_write(const mount_record *use)
{
    return !use->read_only && !capability_is_read_only(use->capability);
}

/* Where the volume's file system is mounted; NULL: nobody can write to it. */
static struct error *
find_mount(struct engine *engine, const volume_record *volume, struct arena *arena,
           const char **path)
{
    struct mount_list uses;
    *path = NULL;
    struct error *error = engine->use->list(engine, volume, arena, &uses);
    if (error)
        return error;
    for (size_t i = 0; i < uses.count; i++) {
        const mount_record *use = uses.records[i];
        if (!may_write(use))
            continue;
        if (volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE ||
            capability_is_block(use->capability))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume \"%s\" is in use at %s, and on this back end only file "
                             "systems in disk images (fs_type ext4, xfs, btrfs) can be frozen: "
                             "unpublish it first, or use the btrfs back end",
                             volume->handle, use->path);
        *path = use->path;
    }
    return NULL;
}

/* Neither the system's own file system nor the one that the data is in: who would thaw them? */
static struct error *
check_harmless(struct engine *engine, const volume_record *volume, const char *path, int fd)
{
    struct data data = volume_data(volume);
    char image[4096];
    struct stat mounted, below, root;
    struct error *error = backend_path(engine->backend, &data, image, sizeof image);
    if (error)
        return error;
    if (fstat(fd, &mounted) != 0 || stat(image, &below) != 0 || stat("/", &root) != 0)
        return error_from_errno(errno, "look at %s", path);
    if (mounted.st_dev == below.st_dev || mounted.st_dev == root.st_dev)
        return error_new(CODE_INTERNAL, "%s is not the volume's own file system", path);
    return NULL;
}

static struct frozen *
add_mount(struct freeze *freeze, const volume_record *volume, const char *path, int fd)
{
    struct frozen *mount = memory_zeroed(sizeof *mount);
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    mount->key = memory_string(arena_print(&arena, PREFIX "%s", volume->handle));
    mount->path = memory_string(path);
    mount->fd = fd;
    mount->line = -1;
    mount->next = freeze->mounts;
    freeze->mounts = mount;
    return mount;
}

/* An abandoned child waits for it: another would only wait with it. */
static struct error *
check_not_abandoned(struct engine *engine, const struct frozen *mount)
{
    bool is_abandoned = false;
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    for (const struct frozen *left = engine->abandoned_freezes.first; left && !is_abandoned;
         left = left->next)
        is_abandoned = strcmp(left->key, mount->key) == 0;
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
    if (!is_abandoned)
        return NULL;
    return error_new(CODE_ABORTED,
                     "the volume at %s was to be frozen before, and a write to it has not "
                     "ended since: try again when it has",
                     mount->path);
}

/* ---- copies that take too long ---- */

struct slow_source {
    struct slow_source *next;
    char handle[BACKEND_HANDLE_SIZE];
    int64_t until_ms;
};

/* The lock is held. */
static void
forget_slow(struct engine *engine, int64_t before_ms)
{
    for (struct slow_source **link = &engine->abandoned_freezes.slow; *link;) {
        struct slow_source *source = *link;
        if (source->until_ms > before_ms) {
            link = &source->next;
            continue;
        }
        *link = source->next;
        free(source);
    }
}

void
freeze_remember_slow(struct engine *engine, volume_record *const *volumes, size_t count)
{
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    for (size_t i = 0; i < count; i++) {
        struct slow_source *source = memory_zeroed(sizeof *source);
        snprintf(source->handle, sizeof source->handle, "%s", volumes[i]->handle);
        source->until_ms = now_ms() + FREEZE_PAUSE_MS;
        source->next = engine->abandoned_freezes.slow;
        engine->abandoned_freezes.slow = source;
    }
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
}

static struct error *
check_not_slow(struct engine *engine, const volume_record *volume)
{
    bool is_slow = false;
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    forget_slow(engine, now_ms());
    for (const struct slow_source *slow = engine->abandoned_freezes.slow; slow && !is_slow;
         slow = slow->next)
        is_slow = strcmp(slow->handle, volume->handle) == 0;
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
    if (!is_slow)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "a copy of the volume \"%s\" was not done after %d s lately, and it cannot be "
                     "frozen for longer; it was not stopped again: unpublish it first, or use "
                     "the btrfs back end",
                     volume->handle, FREEZE_LONGEST_MS / 1000);
}

static struct error *
open_mount(struct freeze *freeze, const volume_record *volume, struct arena *arena)
{
    const char *path;
    struct error *error = find_mount(freeze->engine, volume, arena, &path);
    if (!error && path)
        error = check_not_slow(freeze->engine, volume);
    if (error || !path)
        return error;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open %s", path);
    const struct frozen *mount = add_mount(freeze, volume, path, fd);
    error = check_not_abandoned(freeze->engine, mount);
    return error ? error : check_harmless(freeze->engine, volume, path, fd);
}

/* ---- the child ---- */

static void
close_others(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b);
    unsigned high = (unsigned)(a < b ? b : a);
    if (low > 0)
        close_range(0, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0u, 0);
}

__attribute__((noreturn)) static void
freeze_for_a_while(int mount, int line, int64_t over_ms)
{
    struct pollfd end = {.fd = line, .events = POLLIN};
    close_others(mount, line);
    int failed = ioctl(mount, FIFREEZE, 0) == 0 ? 0 : errno;
    send(line, &failed, sizeof failed, MSG_NOSIGNAL);
    if (failed)
        _exit(0);
    bool is_over = poll(&end, 1, ms_until(over_ms)) == 0;
    ioctl(mount, FITHAW, 0);
    _exit(is_over ? EXIT_TIME_OVER : 0);
}

static struct error *
start_child(struct frozen *mount, int64_t over_ms)
{
    int ends[2];
    sigset_t all, before;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_from_errno(errno, "make a line to a child");
    sigfillset(&all);
    /* A signal to the group is not for the child: it ends by itself, and soon. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0)
        freeze_for_a_while(mount->fd, ends[0], over_ms);
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    mount->line = ends[1];
    if (child < 0)
        return error_from_errno(failed, "start a process that freezes");
    mount->child = child;
    return NULL;
}

/* False: nothing was heard, and the line is open. `*told` is -1 when the child has ended. */
static bool
hear(const struct frozen *mount, int wait_ms, int *told)
{
    struct pollfd line = {.fd = mount->line, .events = POLLIN};
    int ready;
    do
        ready = poll(&line, 1, wait_ms);
    while (ready < 0 && errno == EINTR);
    if (ready > 0 && recv(mount->line, told, sizeof *told, 0) != (ssize_t)sizeof *told)
        *told = -1;
    return ready > 0;
}

/* ---- freezing ---- */

static struct error *
await_freeze(struct frozen *mount, int64_t over_ms)
{
    int failed;
    mount->has_told = hear(mount, ms_until(over_ms), &failed);
    if (!mount->has_told)
        return error_new(CODE_FAILED_PRECONDITION,
                         "a write to the volume at %s lasts longer than %d s, and before it ends "
                         "the volume cannot be frozen: see what hangs, or unpublish it first",
                         mount->path, FREEZE_LONGEST_MS / 1000);
    if (failed == 0)
        return NULL;
    if (failed == -1)
        return error_new(CODE_INTERNAL, "the process that freezes the volume was killed");
    if (failed == EBUSY)
        return error_new(CODE_ABORTED, "somebody else has frozen the volume; try again");
    return error_from_errno(failed, "freeze the volume");
}

/* All at once: those who write wait no longer than for the slowest. */
static struct error *
freeze_all(struct freeze *freeze)
{
    struct error *error = NULL;
    for (struct frozen *mount = freeze->mounts; mount && !error; mount = mount->next)
        error = start_child(mount, freeze->over_ms);
    for (struct frozen *mount = freeze->mounts; mount && !error; mount = mount->next)
        error = await_freeze(mount, freeze->over_ms);
    return error;
}

/* `is_frozen`: or else the rows go. */
static struct error *
write_rows(struct engine *engine, const struct frozen *mounts, bool is_frozen)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    size_t room = 0, count = 0;
    for (const struct frozen *mount = mounts; mount; mount = mount->next)
        room++;
    struct store_change *rows = arena_alloc(&arena, room * sizeof *rows);
    for (const struct frozen *mount = mounts; mount; mount = mount->next)
        rows[count++] =
            (struct store_change){.key = mount->key,
                                  .value = is_frozen ? (const uint8_t *)mount->path : NULL,
                                  .value_size = is_frozen ? strlen(mount->path) : 0,
                                  .expected = STORE_ANY};
    return count ? store_write(engine->store, rows, count, NULL) : NULL;
}

/* ---- and back ---- */

static bool
thaw_at(const char *path)
{
    int mount AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return mount >= 0 && ioctl(mount, FITHAW, 0) == 0; /* EINVAL: it is not frozen */
}

/* The child's end, at the latest after so long; false: it has not ended. */
static bool
reap(struct frozen *mount, int wait_ms)
{
    int status, told = 0;
    while (mount->child && told != -1)
        if (!hear(mount, wait_ms, &told))
            return false;
    if (!mount->child)
        return true;
    while (waitpid(mount->child, &status, 0) < 0 && errno == EINTR)
        ;
    mount->child = 0;
    if (!WIFEXITED(status)) /* it was killed, and has not thawed */
        thaw_at(mount->path);
    mount->was_ended = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return true;
}

/* Their children have ended. */
static void
forget_all(struct engine *engine, struct frozen *mounts)
{
    struct error *error AUTO(error_cleanup) = write_rows(engine, mounts, false);
    if (error)
        log_warn(engine->log, "volumes are thawed again at the next start",
                 LOG_TEXT("error", error->message));
    while (mounts) {
        struct frozen *next = mounts->next;
        free_frozen(mounts);
        mounts = next;
    }
}

static void
move_to(struct frozen **list, struct frozen *mount)
{
    mount->next = *list;
    *list = mount;
}

static void
abandon(struct engine *engine, struct frozen *mount)
{
    log_warn(engine->log, "a volume is not frozen: a write to it does not end",
             LOG_TEXT("path", mount->path));
    files_close(&mount->fd); /* so that it can be unmounted once the child has ended */
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    move_to(&engine->abandoned_freezes.first, mount);
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
}

void
freeze_reap_abandoned(struct engine *engine)
{
    struct frozen *ended = NULL;
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    for (struct frozen **link = &engine->abandoned_freezes.first; *link;) {
        struct frozen *mount = *link;
        if (reap(mount, 0)) {
            *link = mount->next;
            move_to(&ended, mount);
        } else {
            link = &mount->next;
        }
    }
    /* With the lock: the next freeze of the same volume writes the same row. */
    forget_all(engine, ended);
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
}

void
freeze_clear(struct engine *engine)
{
    freeze_reap_abandoned(engine);
    forget_slow(engine, INT64_MAX);
    while (engine->abandoned_freezes.first) {
        struct frozen *mount = engine->abandoned_freezes.first;
        engine->abandoned_freezes.first = mount->next;
        free_frozen(mount);
    }
}

/* ---- beginning and ending ---- */

struct error *
freeze_begin(struct engine *engine, volume_record *const *volumes, size_t count,
             struct freeze **out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct freeze *freeze = memory_zeroed(sizeof *freeze);
    struct error *error = NULL;
    freeze->engine = engine;
    freeze_reap_abandoned(engine);
    for (size_t i = 0; i < count && !error; i++)
        error = open_mount(freeze, volumes[i], &arena);
    freeze->over_ms = now_ms() + FREEZE_LONGEST_MS;
    if (!error)
        error = write_rows(engine, freeze->mounts, true);
    if (!error)
        error = freeze_all(freeze);
    *out = error ? NULL : freeze;
    if (error)
        error_free(freeze_end(freeze));
    return error;
}

bool
freeze_is_needed(const struct freeze *freeze)
{
    return freeze->mounts;
}

bool
freeze_is_over(void *context)
{
    const struct freeze *freeze = context;
    return freeze->mounts && now_ms() >= freeze->over_ms;
}

static struct error *
time_is_over(void)
{
    return error_new(CODE_FAILED_PRECONDITION,
                     "the copies were not done after %d s, and the volumes cannot be frozen "
                     "for longer: unpublish them first, or use the btrfs back end",
                     FREEZE_LONGEST_MS / 1000);
}

struct error *
freeze_end(struct freeze *freeze)
{
    struct frozen *ended = NULL;
    bool is_over = freeze_is_over(freeze);
    /*
     * Not by closing alone: another child, which is about to become another program, may have the
     * line too.
     */
    for (const struct frozen *mount = freeze->mounts; mount; mount = mount->next)
        if (mount->child)
            send(mount->line, "", 1, MSG_NOSIGNAL);
    while (freeze->mounts) {
        struct frozen *mount = freeze->mounts;
        freeze->mounts = mount->next;
        if (reap(mount,
                 mount->has_told ? FREEZE_LONGEST_MS : ms_until(freeze->over_ms) + MOMENT_MS)) {
            is_over |= mount->was_ended;
            move_to(&ended, mount);
        } else {
            abandon(freeze->engine, mount);
        }
    }
    forget_all(freeze->engine, ended);
    free(freeze);
    return is_over ? time_is_over() : NULL;
}

/* ---- after a crash ---- */

static void
recover_one(struct engine *engine, const struct store_entry *entry, struct arena *arena)
{
    const char *path = arena_copy(arena, entry->value, entry->value_size);
    if (thaw_at(path))
        log_warn(engine->log, "thawed a volume that a crash had left frozen",
                 LOG_TEXT("path", path));
}

struct error *
freeze_recover(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_list list;
    struct error *error = store_list(engine->store, PREFIX, NULL, 0, &arena, &list);
    for (size_t i = 0; !error && i < list.count; i++) {
        struct store_change gone = {.key = list.entries[i].key, .expected = STORE_ANY};
        recover_one(engine, &list.entries[i], &arena);
        error = store_write(engine->store, &gone, 1, NULL);
    }
    return error;
}
