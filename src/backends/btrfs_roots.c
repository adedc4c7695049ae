/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of roots: see btrfs_roots.h. */
#include "backends/btrfs_roots.h"

#include <btrfsutil.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "backends/btrfs_items.h"
#include "base/files.h"
#include "base/memory.h"

/*
 * The type of handles that btrfs gives to open_by_handle_at: FILEID_BTRFS_WITHOUT_PARENT in the
 * kernel.
 */
#define HANDLE_TYPE 0x4d
#define HANDLE_BYTES 20u

void
btrfs_ids_add(struct btrfs_ids *list, uint64_t id)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 16;
        list->ids = memory_resize(list->ids, list->room * sizeof *list->ids);
    }
    list->ids[list->count++] = id;
}

void
btrfs_ids_clear(struct btrfs_ids *list)
{
    free(list->ids);
    *list = (struct btrfs_ids){0};
}

static bool
read_link(const struct btrfs_ioctl_search_header *header, const void *item, struct btrfs_link *out)
{
    struct btrfs_root_ref reference;
    if (header->type != BTRFS_ROOT_BACKREF_KEY || header->len < sizeof reference)
        return false;
    memcpy(&reference, item, sizeof reference);
    *out = (struct btrfs_link){header->objectid, header->offset, le64toh(reference.dirid)};
    return true;
}

struct taker {
    void (*take)(void *context, const struct btrfs_link *link);
    void *context;
};

static void
take_link(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    const struct taker *taker = context;
    struct btrfs_link link;
    if (read_link(header, item, &link))
        taker->take(taker->context, &link);
}

struct error *
btrfs_roots_each(int fd, uint64_t after, void (*take)(void *context, const struct btrfs_link *link),
                 void *context)
{
    struct taker taker = {take, context};
    uint64_t first = after < BTRFS_FIRST_FREE_OBJECTID ? BTRFS_FIRST_FREE_OBJECTID : after + 1;
    struct btrfs_range range = {.tree = BTRFS_ROOT_TREE_OBJECTID,
                                .min = {first, 0, 0},
                                .max = {BTRFS_LAST_FREE_OBJECTID, UINT8_MAX, UINT64_MAX}};
    return btrfs_items_each(fd, range, take_link, &taker);
}

static struct btrfs_range
range_of_link(uint64_t id)
{
    return (struct btrfs_range){.tree = BTRFS_ROOT_TREE_OBJECTID,
                                .min = {id, BTRFS_ROOT_BACKREF_KEY, 0},
                                .max = {id, BTRFS_ROOT_BACKREF_KEY, UINT64_MAX}};
}

struct error *
btrfs_roots_find(int fd, uint64_t id, struct btrfs_link *out)
{
    struct btrfs_items *items AUTO(memory_cleanup) = memory_new(sizeof *items);
    struct btrfs_ioctl_search_header header;
    struct btrfs_range range = range_of_link(id);
    struct error *error = btrfs_items_ask(items, fd, &range);
    const void *item = error ? NULL : btrfs_items_next(items, &header);
    if (!item || !read_link(&header, item, out))
        *out = (struct btrfs_link){0};
    return error;
}

static void
take_child(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    (void)item;
    if (header->type == BTRFS_ROOT_REF_KEY)
        btrfs_ids_add(context, header->offset);
}

struct error *
btrfs_roots_list_children(int fd, uint64_t id, struct btrfs_ids *out)
{
    struct btrfs_range range = {.tree = BTRFS_ROOT_TREE_OBJECTID,
                                .min = {id, BTRFS_ROOT_REF_KEY, 0},
                                .max = {id, BTRFS_ROOT_REF_KEY, UINT64_MAX}};
    return btrfs_items_each(fd, range, take_child, out);
}

/* Opens a directory of a subvolume. */
static int
open_inode(int fd, uint64_t subvolume, uint64_t inode)
{
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + HANDLE_BYTES];
    } name = {.bytes = {0}};
    name.handle.handle_type = HANDLE_TYPE;
    name.handle.handle_bytes = HANDLE_BYTES;
    memcpy(name.handle.f_handle, &inode, sizeof inode);
    memcpy(name.handle.f_handle + sizeof inode, &subvolume, sizeof subvolume);
    return open_by_handle_at(fd, &name.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
btrfs_roots_open(int fd, uint64_t id)
{
    return open_inode(fd, id, BTRFS_FIRST_FREE_OBJECTID);
}

static bool
is_gone(int failed)
{
    return failed == ENOENT || failed == ESTALE;
}

/* Deletes by name in its directory: deletion by id fails if the path is too long for the kernel. */
struct error *
btrfs_roots_delete(int fd, uint64_t id)
{
    struct btrfs_items *items AUTO(memory_cleanup) = memory_new(sizeof *items);
    struct btrfs_ioctl_search_header header;
    struct btrfs_link link;
    char name[BTRFS_VOL_NAME_MAX + 1];
    struct btrfs_range range = range_of_link(id);
    struct error *error = btrfs_items_ask(items, fd, &range);
    const void *item = error ? NULL : btrfs_items_next(items, &header);
    if (!item || !read_link(&header, item, &link))
        return error;
    size_t size = header.len - sizeof(struct btrfs_root_ref);
    if (size >= sizeof name)
        return error_new(CODE_INTERNAL, "a subvolume has a name of %zu bytes", size);
    memcpy(name, (const char *)item + sizeof(struct btrfs_root_ref), size);
    name[size] = 0;
    int directory AUTO(files_close) = open_inode(fd, link.parent, link.directory);
    bool is_deleted =
        directory >= 0 && btrfs_util_delete_subvolume_fd(directory, name, 0) == BTRFS_UTIL_OK;
    return is_deleted || is_gone(errno) ? NULL : error_from_errno(errno, "delete a subvolume");
}
