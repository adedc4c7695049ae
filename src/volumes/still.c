/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that nobody can write to for a moment: see still.h.
 *
 * The kernel never thaws by itself, not even when the process that froze is gone. So a child of ours thaws: when we say so on a line to it, when
 * we die (which closes the line), and when the time is over. What the child needs is made before the fork; after it there are only system
 * calls, because the other threads' locks are not to be relied upon. Should both be killed at once, rows in the store say what is frozen:
 *
 *     frozen/VOLUME    the path where it is mounted
 */
#include "volumes/still.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/files.h"
#include "base/memory.h"
#include "volumes/stage.h"
#include "volumes/volume.h"

#define PREFIX "frozen/"

/* One file system, by what is mounted; frozen or about to be. */
struct frozen {
    int fd;
    atomic_bool is_ours; /* we froze it: a freeze of somebody else's stays */
};

/* In memory that we share with the child. */
struct shared {
    atomic_bool is_over;
    size_t count;
    struct frozen mounts[];
};

struct still {
    struct engine *engine;
    struct arena arena;
    struct store_change *rows; /* as they are deleted */
    size_t row_count;
    struct shared *shared;
    size_t shared_size;
    int line; /* the child waits for a byte, or its end */
    pid_t child;
};

/* ---- what has to be frozen ---- */

static bool
may_write(const mount_record *use)
{
    return !use->read_only && !place_reads_only(use->capability);
}

/* Where the volume's file system is mounted; NULL: nobody can write to it. */
static struct error *
find_mount(struct engine *engine, const volume_record *volume, struct arena *arena,
           const char **path)
{
    struct mount_list uses;
    *path = NULL;
    struct error *error = stage_list_uses(engine, volume, arena, &uses);
    if (error)
        return error;
    for (size_t i = 0; i < uses.count; i++) {
        const mount_record *use = uses.records[i];
        if (!may_write(use))
            continue;
        if (volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE ||
            place_is_block(use->capability))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume \"%s\" is in use at %s, and on this back end only file "
                             "systems in disk images (fs_type ext4, xfs, btrfs) can be held still: "
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

static struct error *
open_mount(struct still *still, const volume_record *volume)
{
    const char *path;
    struct error *error = find_mount(still->engine, volume, &still->arena, &path);
    if (error || !path)
        return error;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open %s", path);
    still->shared->mounts[still->shared->count++].fd = fd;
    still->rows[still->row_count++] =
        (struct store_change){.key = arena_print(&still->arena, PREFIX "%s", volume->handle),
                              .value = (const uint8_t *)path,
                              .value_size = strlen(path),
                              .expected = STORE_ANY};
    return check_harmless(still->engine, volume, path, fd);
}

/* ---- the child ---- */

static void
thaw(struct shared *shared)
{
    for (size_t i = 0; i < shared->count; i++)
        if (atomic_exchange(&shared->mounts[i].is_ours, false))
            ioctl(shared->mounts[i].fd, FITHAW, 0);
}

/* All but the mounts and the line, which are in ascending order. */
static void
close_others(const struct shared *shared, int line)
{
    unsigned next = 0;
    for (size_t i = 0; i <= shared->count; i++) {
        unsigned kept = (unsigned)(i < shared->count ? shared->mounts[i].fd : line);
        if (kept > next)
            close_range(next, kept - 1, 0);
        next = kept + 1;
    }
    close_range(next, ~0u, 0);
}

__attribute__((noreturn)) static void
watch_over(struct shared *shared, int line)
{
    struct pollfd end = {.fd = line, .events = POLLIN};
    close_others(shared, line);
    if (poll(&end, 1, STILL_LONGEST_MS) == 0)
        atomic_store(&shared->is_over, true);
    thaw(shared);
    _exit(0);
}

/* Descriptors are given out from the lowest, but one that another thread has closed meanwhile may come late. */
static int
compare_mounts(const void *a, const void *b)
{
    return ((const struct frozen *)a)->fd - ((const struct frozen *)b)->fd;
}

static struct error *
open_line(struct shared *shared, int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_from_errno(errno, "make a line to a child");
    qsort(shared->mounts, shared->count, sizeof shared->mounts[0], compare_mounts);
    int above = fcntl(ends[0], F_DUPFD_CLOEXEC, shared->mounts[shared->count - 1].fd + 1);
    close(ends[0]);
    ends[0] = above;
    if (above >= 0)
        return NULL;
    struct error *error = error_from_errno(errno, "move the end of a line");
    close(ends[1]);
    return error;
}

static struct error *
start_child(struct still *still)
{
    int ends[2];
    sigset_t all, before;
    struct error *error = open_line(still->shared, ends);
    if (error)
        return error;
    sigfillset(&all);
    /* A signal to the group is not for the child: it ends by itself, and soon. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    still->child = fork();
    if (still->child == 0)
        watch_over(still->shared, ends[0]);
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    still->line = ends[1];
    return still->child < 0 ? error_from_errno(failed, "start a process that thaws") : NULL;
}

/* ---- freezing ---- */

static struct error *
time_is_over(void)
{
    return error_new(CODE_FAILED_PRECONDITION,
                     "the copies were not done after %d s, and the volumes cannot be held still "
                     "for longer: unpublish them first, or use the btrfs back end",
                     STILL_LONGEST_MS / 1000);
}

/*
 * The kernel waits for those who are in the midst of a write, however long they take. The child does not: it may have tried to thaw what was not
 * frozen yet, and nobody would do it again. Nor is anything frozen that it would not see any more.
 */
static struct error *
freeze(const struct shared *shared, struct frozen *mount)
{
    atomic_store(&mount->is_ours, true);
    if (atomic_load(&shared->is_over)) {
        atomic_store(&mount->is_ours, false);
        return time_is_over();
    }
    if (ioctl(mount->fd, FIFREEZE, 0) == 0) {
        if (atomic_load(&mount->is_ours))
            return NULL;
        ioctl(mount->fd, FITHAW, 0);
        return time_is_over();
    }
    int failed = errno;
    atomic_store(&mount->is_ours, false);
    if (failed == EBUSY)
        return error_new(CODE_ABORTED, "somebody else has frozen the volume; try again");
    return error_from_errno(failed, "freeze the volume");
}

static struct error *
freeze_all(struct still *still)
{
    struct error *error = NULL;
    for (size_t i = 0; i < still->shared->count && !error; i++)
        error = freeze(still->shared, &still->shared->mounts[i]);
    return error;
}

static struct error *
delete_rows(struct still *still)
{
    for (size_t i = 0; i < still->row_count; i++)
        still->rows[i].value = NULL;
    return still->row_count ? store_write(still->engine->store, still->rows, still->row_count, NULL)
                            : NULL;
}

/* The child first, so that none is thawed twice; then what it could not. */
static void
thaw_all(struct still *still)
{
    /* Not by closing alone: another child, which is about to become another program, may have the line too. */
    if (still->line >= 0)
        send(still->line, "", 1, MSG_NOSIGNAL);
    files_close(&still->line);
    while (still->child > 0 && waitpid(still->child, NULL, 0) < 0 && errno == EINTR)
        ;
    thaw(still->shared);
}

static void
free_still(struct still *still)
{
    for (size_t i = 0; i < still->shared->count; i++)
        files_close(&still->shared->mounts[i].fd);
    munmap(still->shared, still->shared_size);
    arena_clear(&still->arena);
    free(still);
}

static struct error *
new_still(struct engine *engine, size_t count, struct still **out)
{
    size_t size = sizeof(struct shared) + count * sizeof(struct frozen);
    struct shared *shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return error_from_errno(errno, "get memory to share with a child");
    struct still *still = memory_zeroed(sizeof *still);
    still->engine = engine;
    still->shared = shared;
    still->shared_size = size;
    still->line = -1;
    arena_init(&still->arena, NULL, 0, SIZE_MAX);
    still->rows = arena_alloc(&still->arena, count * sizeof *still->rows);
    *out = still;
    return NULL;
}

static struct error *
freeze_mounts(struct still *still)
{
    struct error *error = NULL;
    if (!still->shared->count)
        return NULL;
    error = store_write(still->engine->store, still->rows, still->row_count, NULL);
    if (!error)
        error = start_child(still);
    return error ? error : freeze_all(still);
}

struct error *
still_begin(struct engine *engine, volume_record *const *volumes, size_t count, struct still **out)
{
    *out = NULL;
    struct error *error = new_still(engine, count, out);
    for (size_t i = 0; i < count && !error; i++)
        error = open_mount(*out, volumes[i]);
    if (!error)
        error = freeze_mounts(*out);
    if (error && *out) {
        error_free(still_end(*out));
        *out = NULL;
    }
    return error;
}

bool
still_is_frozen(const struct still *still)
{
    return still->shared->count > 0;
}

bool
still_is_over(void *still)
{
    return atomic_load(&((struct still *)still)->shared->is_over);
}

struct error *
still_end(struct still *still)
{
    thaw_all(still);
    struct error *error = NULL;
    if (still_is_over(still))
        error = time_is_over();
    struct error *unwritten AUTO(error_cleanup) = delete_rows(still);
    if (unwritten)
        log_warn(still->engine->log, "volumes are thawed again at the next start",
                 LOG_TEXT("error", unwritten->message));
    free_still(still);
    return error;
}

/* ---- after a crash ---- */

static void
recover_one(struct engine *engine, const struct store_entry *entry, struct arena *arena)
{
    const char *path = arena_copy(arena, entry->value, entry->value_size);
    int mount AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: it is not frozen. */
    if (mount >= 0 && ioctl(mount, FITHAW, 0) == 0)
        log_warn(engine->log, "thawed a volume that a crash had left frozen",
                 LOG_TEXT("path", path));
}

struct error *
still_recover(struct engine *engine)
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
