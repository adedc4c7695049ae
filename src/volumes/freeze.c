/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing: see freeze.h, and frozen_mount.h for one file system. If the process and the child that
 * froze are killed together, rows in the store tell what is frozen:
 *
 *     frozen/VOLUME    the path where it is mounted
 */
#include "volumes/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "rpc/loop/timers.h"
#include "volumes/capability.h"
#include "volumes/frozen_mount.h"
#include "volumes/volume.h"
#include "volumes/volume_use.h"

#define PREFIX "frozen/"

/* A child that has nothing to wait for ends within this time. */
#define MOMENT_MS 100

struct freeze {
    struct engine *engine;
    int64_t over_ms;
    struct frozen_mount *mounts;
};

static int64_t
now_ms(void)
{
    return (int64_t)(timers_now() / 1000000);
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

/*
 * Refuses the root file system and the one that holds the data: with those frozen, nothing could
 * thaw them.
 */
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

static struct frozen_mount *
add_mount(struct freeze *freeze, const volume_record *volume, const char *path, int fd)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct frozen_mount *mount =
        frozen_mount_new(arena_print(&arena, PREFIX "%s", volume->handle), path, fd);
    mount->next = freeze->mounts;
    freeze->mounts = mount;
    return mount;
}

/* While an abandoned child waits for the file system, another child would only wait too. */
static struct error *
check_not_abandoned(struct engine *engine, const struct frozen_mount *mount)
{
    bool is_abandoned = false;
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    for (const struct frozen_mount *left = engine->abandoned_freezes.first; left && !is_abandoned;
         left = left->next)
        is_abandoned = strcmp(left->key, mount->key) == 0;
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
    if (!is_abandoned)
        return NULL;
    return error_new(
        CODE_ABORTED,
        "an earlier freeze of the volume at %s still waits for a write to end: try again later",
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
                     "a recent copy of the volume \"%s\" took longer than the %d s that it can be "
                     "frozen for: unpublish it first, or use the btrfs back end",
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
    const struct frozen_mount *mount = add_mount(freeze, volume, path, fd);
    error = check_not_abandoned(freeze->engine, mount);
    return error ? error : check_harmless(freeze->engine, volume, path, fd);
}

/* ---- freezing ---- */

/* Freezes all in parallel, so writers wait only as long as the slowest takes. */
static struct error *
freeze_all(struct freeze *freeze)
{
    struct error *error = NULL;
    for (struct frozen_mount *mount = freeze->mounts; mount && !error; mount = mount->next)
        error = frozen_mount_start(mount, freeze->over_ms);
    for (struct frozen_mount *mount = freeze->mounts; mount && !error; mount = mount->next)
        error = frozen_mount_wait(mount, freeze->over_ms);
    return error;
}

/* Writes the rows if `is_frozen`, deletes them otherwise. */
static struct error *
write_rows(struct engine *engine, const struct frozen_mount *mounts, bool is_frozen)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    size_t room = 0, count = 0;
    for (const struct frozen_mount *mount = mounts; mount; mount = mount->next)
        room++;
    struct store_change *rows = arena_alloc(&arena, room * sizeof *rows);
    for (const struct frozen_mount *mount = mounts; mount; mount = mount->next)
        rows[count++] =
            (struct store_change){.key = mount->key,
                                  .value = is_frozen ? (const uint8_t *)mount->path : NULL,
                                  .value_size = is_frozen ? strlen(mount->path) : 0,
                                  .expected = STORE_ANY};
    return count ? store_write(engine->store, rows, count, NULL) : NULL;
}

/* ---- and back ---- */

/* Their children have ended. */
static void
forget_all(struct engine *engine, struct frozen_mount *mounts)
{
    struct error *error AUTO(error_cleanup) = write_rows(engine, mounts, false);
    if (error)
        log_warn(engine->log, "volumes are thawed again at the next start",
                 LOG_TEXT("error", error->message));
    while (mounts) {
        struct frozen_mount *next = mounts->next;
        frozen_mount_free(mounts);
        mounts = next;
    }
}

static void
move_to(struct frozen_mount **list, struct frozen_mount *mount)
{
    mount->next = *list;
    *list = mount;
}

static void
abandon(struct engine *engine, struct frozen_mount *mount)
{
    log_warn(engine->log, "a volume is not frozen: a write to it does not end",
             LOG_TEXT("path", mount->path));
    files_close(&mount->fd); /* so that it can be unmounted when the child has ended */
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    move_to(&engine->abandoned_freezes.first, mount);
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
}

void
freeze_reap_abandoned(struct engine *engine)
{
    struct frozen_mount *ended = NULL;
    pthread_mutex_lock(&engine->abandoned_freezes.lock);
    for (struct frozen_mount **link = &engine->abandoned_freezes.first; *link;) {
        struct frozen_mount *mount = *link;
        if (frozen_mount_reap(mount, 0)) {
            *link = mount->next;
            move_to(&ended, mount);
        } else {
            link = &mount->next;
        }
    }
    /* Under the lock: the next freeze of the same volume writes the same row. */
    forget_all(engine, ended);
    pthread_mutex_unlock(&engine->abandoned_freezes.lock);
}

void
freeze_clear(struct engine *engine)
{
    freeze_reap_abandoned(engine);
    forget_slow(engine, INT64_MAX);
    while (engine->abandoned_freezes.first) {
        struct frozen_mount *mount = engine->abandoned_freezes.first;
        engine->abandoned_freezes.first = mount->next;
        frozen_mount_free(mount);
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
                     "the copies took longer than the %d s that volumes can be frozen for: "
                     "unpublish them first, or use the btrfs back end",
                     FREEZE_LONGEST_MS / 1000);
}

struct error *
freeze_end(struct freeze *freeze)
{
    struct frozen_mount *ended = NULL;
    bool is_over = freeze_is_over(freeze);
    for (const struct frozen_mount *mount = freeze->mounts; mount; mount = mount->next)
        frozen_mount_thaw(mount);
    while (freeze->mounts) {
        struct frozen_mount *mount = freeze->mounts;
        freeze->mounts = mount->next;
        if (frozen_mount_reap(mount, mount->has_told
                                         ? FREEZE_LONGEST_MS
                                         : frozen_mount_ms_until(freeze->over_ms) + MOMENT_MS)) {
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
    if (frozen_mount_thaw_at(path))
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
