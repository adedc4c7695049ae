/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of roots: see btrfs_roots.h. */
#include "backends/btrfs_roots.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "backends/btrfs_items.h"
#include "base/memory.h"

/* How btrfs names a file to open_by_handle_at: FILEID_BTRFS_WITHOUT_PARENT of the kernel. */
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

struct error *
btrfs_roots_find(int fd, uint64_t id, struct btrfs_link *out)
{
    struct btrfs_items *items AUTO(memory_cleanup) = memory_new(sizeof *items);
    struct btrfs_ioctl_search_header header;
    struct btrfs_range range = {.tree = BTRFS_ROOT_TREE_OBJECTID,
                                .min = {id, BTRFS_ROOT_BACKREF_KEY, 0},
                                .max = {id, BTRFS_ROOT_BACKREF_KEY, UINT64_MAX}};
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

int
btrfs_roots_open(int fd, uint64_t id)
{
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + HANDLE_BYTES];
    } name = {.bytes = {0}};
    uint64_t inode = BTRFS_FIRST_FREE_OBJECTID;
    name.handle.handle_type = HANDLE_TYPE;
    name.handle.handle_bytes = HANDLE_BYTES;
    memcpy(name.handle.f_handle, &inode, sizeof inode);
    memcpy(name.handle.f_handle + sizeof inode, &id, sizeof id);
    return open_by_handle_at(fd, &name.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
