/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subvolumes in volumes: see btrfs_nested.h.
 *
 * The cost of a scan depends on the number of subvolumes made since the last one. From time to time
 * all are scanned: of two subvolumes made at the same time, the one with the higher id may be seen
 * first, and then the other one is found only by a full scan.
 *
 * Users may be hostile. A subvolume made in one that is in its volume's group joins the group by
 * itself, unless its maker leaves it outside or puts it into the group of another volume. So each
 * new one is checked. Once a group is over its limit, no subvolume can be made in any of its
 * members, but one can be made in those that were made during the scan. Therefore the scan repeats
 * until it finds nothing new.
 */
#include "backends/btrfs_nested.h"

#include <btrfsutil.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "backends/btrfs.h"
#include "backends/btrfs_family.h"
#include "backends/btrfs_items.h"
#include "backends/layout.h"
#include "base/files.h"
#include "base/memory.h"

#define LOOKS_UNTIL_ALL 30 /* a scan every other second: once a minute */
#define MOST_ROUNDS 16

/* A subvolume that has been examined; in a tree by id. */
struct known {
    uint64_t id;
    uint64_t volume; /* the one that contains it at any depth, or itself; 0: none of ours */
    bool has_family;
    struct known *below; /* while walking up: the one below */
};

struct look {
    struct btrfs_backend *btrfs;
    uint64_t top; /* the subvolume of the data directory */
    uint64_t highest_id;
    struct btrfs_link *found; /* those outside the data directory's subvolume */
    size_t count;
    size_t room;
    void *known;
};

static void
clear_look(struct look *look)
{
    free(look->found);
    tdestroy(look->known, free);
}

static int
compare_ids(const void *a, const void *b)
{
    uint64_t left = ((const struct known *)a)->id, right = ((const struct known *)b)->id;
    return (left > right) - (left < right);
}

/* The entry of this subvolume; adds a new one. */
static struct known *
remember(struct look *look, uint64_t id, bool *is_new)
{
    struct known *entry = memory_zeroed(sizeof *entry);
    entry->id = id;
    void *node = tsearch(entry, &look->known, compare_ids);
    if (!node)
        memory_exhausted();
    struct known *kept = *(struct known **)node;
    *is_new = kept == entry;
    if (!*is_new)
        free(entry);
    return kept;
}

/* ---- whose is it? ---- */

/* The handle of the holder with this inode, or "": the path ends in "HANDLE/". */
static void
find_handle(const struct look *look, uint64_t directory, char handle[BACKEND_HANDLE_SIZE])
{
    struct btrfs_ioctl_ino_lookup_args *place AUTO(memory_cleanup) = memory_zeroed(sizeof *place);
    place->treeid = look->top;
    place->objectid = directory;
    handle[0] = 0;
    if (ioctl(look->btrfs->base.root, BTRFS_IOC_INO_LOOKUP, place) != 0)
        return;
    size_t size = strnlen(place->name, sizeof place->name);
    if (!size || place->name[size - 1] != '/')
        return;
    place->name[--size] = 0;
    const char *slash = strrchr(place->name, '/');
    const char *name = slash ? slash + 1 : place->name;
    if (strlen(name) < BACKEND_HANDLE_SIZE)
        memcpy(handle, name, strlen(name) + 1);
}

/* The holder of a volume, if the subvolume is the tree of one; else -1. */
static int
open_holder(const struct look *look, const struct btrfs_link *link, struct data *data)
{
    int holder AUTO(files_close) = -1;
    struct stat status;
    *data = (struct data){.kind = KIND_TREE, .role = ROLE_VOLUME};
    if (link->parent != look->top)
        return -1;
    find_handle(look, link->directory, data->handle);
    if (!data->handle[0])
        return -1;
    struct error *error AUTO(error_cleanup) =
        layout_open_holder(look->btrfs->base.root, data, &holder);
    bool is_holder = !error && fstat(holder, &status) == 0 && status.st_ino == link->directory;
    return is_holder ? files_keep(&holder) : -1;
}

static bool
is_volume(const struct look *look, const struct btrfs_link *link)
{
    struct data data;
    int holder AUTO(files_close) = open_holder(look, link, &data);
    return holder >= 0;
}

/*
 * Walks up until it finds a known one, so each subvolume is looked up once per scan at any nesting.
 */
static struct error *
find_volume(struct look *look, struct btrfs_link link, uint64_t *volume)
{
    struct known *way = NULL;
    struct error *error = NULL;
    *volume = 0;
    while (!error && link.id) {
        bool is_new;
        struct known *here = remember(look, link.id, &is_new);
        if (!is_new) {
            *volume = here->volume;
            break;
        }
        here->below = way;
        way = here;
        if (link.parent == look->top) {
            *volume = is_volume(look, &link) ? link.id : 0;
            break;
        }
        error = btrfs_roots_find(look->btrfs->base.root, link.parent, &link);
    }
    for (; way; way = way->below)
        way->volume = *volume;
    return error;
}

/* ---- looking ---- */

static struct error *
make_family(struct look *look, struct known *volume)
{
    struct data data;
    struct btrfs_link link;
    bool is_new = false;
    struct error *error = btrfs_roots_find(look->btrfs->base.root, volume->id, &link);
    if (error || !link.id)
        return error;
    int holder AUTO(files_close) = open_holder(look, &link, &data);
    if (holder < 0)
        return NULL;
    error = btrfs_family_make(look->btrfs->base.root, volume->id, holder, &is_new);
    volume->has_family = !error;
    if (is_new && !error)
        log_info(look->btrfs->log,
                 "somebody has made subvolumes in a volume: they count towards its size",
                 LOG_TEXT("handle", data.handle));
    return error;
}

/* Ignores a volume that has been deleted meanwhile. */
static struct error *
join(struct look *look, uint64_t id, uint64_t volume_id)
{
    bool ignored;
    struct known *volume = remember(look, volume_id, &ignored);
    struct error *error = volume->has_family ? NULL : make_family(look, volume);
    return error || !volume->has_family ? error
                                        : btrfs_family_join(look->btrfs->base.root, volume_id, id);
}

static void
take_link(void *context, const struct btrfs_link *link)
{
    struct look *look = context;
    if (link->id > look->highest_id)
        look->highest_id = link->id;
    if (link->parent == look->top)
        return;
    if (look->count == look->room) {
        look->room = look->room ? 2 * look->room : 16;
        look->found = memory_resize(look->found, look->room * sizeof *look->found);
    }
    look->found[look->count++] = *link;
}

static struct error *
look_once(struct look *look)
{
    look->count = 0;
    struct error *error =
        btrfs_roots_each(look->btrfs->base.root, look->highest_id, take_link, look);
    for (size_t i = 0; i < look->count && !error; i++) {
        uint64_t volume = 0;
        error = find_volume(look, look->found[i], &volume);
        if (!error && volume)
            error = join(look, look->found[i].id, volume);
    }
    return error;
}

static struct error *
look_for_new(struct btrfs_backend *btrfs)
{
    struct look look AUTO(clear_look) = {.btrfs = btrfs, .highest_id = btrfs->nested.highest_id};
    if (btrfs_util_subvolume_id_fd(btrfs->base.root, &look.top) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "ask for the id of a subvolume");
    struct error *error = NULL;
    look.count = 1;
    for (unsigned round = 0; round < MOST_ROUNDS && look.count && !error; round++)
        error = look_once(&look);
    if (!error)
        btrfs->nested.highest_id = look.highest_id;
    return error;
}

struct error *
btrfs_nested_look(struct btrfs_backend *btrfs)
{
    struct btrfs_nested *nested = &btrfs->nested;
    if (btrfs->quota.kind != BTRFS_QUOTA_SIMPLE)
        return NULL;
    bool is_at_all = nested->looks++ % LOOKS_UNTIL_ALL == 0;
    if (is_at_all)
        nested->highest_id = 0;
    struct error *error = look_for_new(btrfs);
    size_t removed = atomic_load(&btrfs->removed);
    if (!error && (is_at_all || removed != nested->removed_count))
        error = btrfs_family_drop_stale(btrfs->base.root);
    if (!error)
        nested->removed_count = removed;
    return error_wrap(error, "look for subvolumes in volumes");
}

/* ---- deleting ---- */

/* Parents come before their children. */
static struct error *
list_all(int root, uint64_t id, struct btrfs_ids *out)
{
    struct error *error = btrfs_roots_list_children(root, id, out);
    for (size_t i = 0; i < out->count && !error; i++)
        error = btrfs_roots_list_children(root, out->ids[i], out);
    return error;
}

/*
 * Deleting something in it changes it, so it must be writable and without a limit; making it
 * writable is such a change too.
 */
static struct error *
unlock(struct btrfs_backend *btrfs, uint64_t id)
{
    uint64_t writable = 0;
    int subvolume AUTO(files_close) = btrfs_roots_open(btrfs->base.root, id);
    if (subvolume < 0)
        return errno == ENOENT || errno == ESTALE
                   ? NULL
                   : error_from_errno(errno, "open a subvolume in a volume");
    struct error *error =
        btrfs->quota.kind == BTRFS_QUOTA_NONE ? NULL : btrfs_family_release(btrfs->base.root, id);
    if (!error && ioctl(subvolume, BTRFS_IOC_SUBVOL_SETFLAGS, &writable) != 0)
        error = error_from_errno(errno, "make a subvolume in a volume writable");
    return error;
}

static struct error *
delete_all(struct btrfs_backend *btrfs, const struct btrfs_ids *list)
{
    struct error *error = NULL;
    for (size_t i = 0; i < list->count && !error; i++)
        error = unlock(btrfs, list->ids[i]);
    for (size_t i = list->count; i-- > 0 && !error;) {
        error = btrfs_roots_delete(btrfs->base.root, list->ids[i]);
        if (!error && btrfs->quota.kind == BTRFS_QUOTA_CLASSIC)
            btrfs_quota_remove(&btrfs->quota, btrfs->base.root, list->ids[i]);
    }
    return error;
}

struct error *
btrfs_nested_delete(struct btrfs_backend *btrfs, int holder, const char *name, uint64_t *id)
{
    struct btrfs_ids list AUTO(btrfs_ids_clear) = {0};
    int subvolume AUTO(files_close) = files_open_directory(holder, name);
    if (subvolume < 0 || btrfs_util_subvolume_id_fd(subvolume, id) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "open a subvolume");
    struct error *error = btrfs_quota_set_size(&btrfs->quota, holder, subvolume, 0);
    if (!error)
        error = list_all(btrfs->base.root, *id, &list);
    return error ? error : delete_all(btrfs, &list);
}
