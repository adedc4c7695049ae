/* SPDX-License-Identifier: Apache-2.0 */
/* Making entries: see tree_target.h. */
#include "exports/tree_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define NEW_MODE 0600

/* Where an entry is: a descriptor, or a name in a directory if it is -1. */
struct place {
    int fd;
    int directory;
    const char *name;
};

/* ---- directories ---- */

static struct error *
explain_open(int errnum, const char *path)
{
    if (errnum == ELOOP || errnum == EXDEV || errnum == ENOTDIR)
        return error_new(CODE_DATA_LOSS,
                         "the manifest leads through what is no directory of the tree: %s", path);
    return error_from_errno(errnum, "open %s", path);
}

struct error *
tree_target_open(int root, const char *path, int *out)
{
    *out = files_open_below(root, path[0] ? path : ".", O_RDONLY | O_DIRECTORY);
    return *out < 0 ? explain_open(errno, path) : NULL;
}

struct error *
tree_target_make_directory(int root, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent AUTO(memory_cleanup) = memory_string(path);
    int fd AUTO(files_close) = -1, made AUTO(files_close) = -1;
    if (!path[0])
        return NULL;
    parent[slash ? slash - path : 0] = 0;
    struct error *error = tree_target_open(root, parent, &fd);
    return error ? error : files_make_directory(fd, slash ? slash + 1 : path, &made);
}

/* ---- metadata ---- */

bool
tree_target_may_lose(const char *name)
{
    return !strcmp(name, "security.selinux") || !strncmp(name, "btrfs.", strlen("btrfs."));
}

bool
tree_target_is_repeated(const char *name)
{
    return !strncmp(name, "trusted.SGI_ACL_", strlen("trusted.SGI_ACL_"));
}

static struct error *
set_attributes(const struct place *place, const struct tree_entry *entry)
{
    struct varint_reader in = {entry->attributes, entry->attributes + entry->attributes_size,
                               false};
    char path[TREE_NAME_MAX + 64];
    const char *name;
    const uint8_t *value;
    size_t size;
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", place->directory, place->name);
    while (tree_attributes_next(&in, &name, &value, &size)) {
        int result = place->fd >= 0 ? fsetxattr(place->fd, name, value, size, 0)
                                    : lsetxattr(path, name, value, size, 0);
        if (result != 0 && !tree_target_may_lose(name))
            return error_from_errno(errno, "set the extended attribute %s of %s", name,
                                    entry->name);
    }
    return NULL;
}

static int
set_owner(const struct place *place, const struct tree_entry *entry)
{
    return place->fd >= 0 ? fchown(place->fd, entry->user, entry->group)
                          : fchownat(place->directory, place->name, entry->user, entry->group,
                                     AT_SYMLINK_NOFOLLOW);
}

static int
set_mode(const struct place *place, const struct tree_entry *entry)
{
    if (entry->kind == TREE_SYMLINK)
        return 0;
    return place->fd >= 0
               ? fchmod(place->fd, entry->mode)
               : fchmodat(place->directory, place->name, entry->mode, AT_SYMLINK_NOFOLLOW);
}

/* A change of the owner removes bits of the mode and capabilities, so it is first. */
static struct error *
set_metadata(const struct place *place, const struct tree_entry *entry)
{
    struct timespec time = {.tv_sec = entry->modified_s, .tv_nsec = entry->modified_ns};
    const struct timespec times[] = {time, time};
    bool is_ours = entry->user == geteuid() && entry->group == getegid();
    if (!is_ours && set_owner(place, entry) != 0)
        return error_from_errno(errno, "set the owner of %s", entry->name);
    if (set_mode(place, entry) != 0)
        return error_from_errno(errno, "set the mode of %s", entry->name);
    struct error *error = entry->attributes_size ? set_attributes(place, entry) : NULL;
    if (error)
        return error;
    int result = place->fd >= 0
                     ? futimens(place->fd, times)
                     : utimensat(place->directory, place->name, times, AT_SYMLINK_NOFOLLOW);
    return result != 0 ? error_from_errno(errno, "set the times of %s", entry->name) : NULL;
}

struct error *
tree_target_finish_directory(int root, const struct tree_entry *entry)
{
    int fd AUTO(files_close) = -1;
    struct error *error = tree_target_open(root, entry->name, &fd);
    if (error)
        return error;
    struct place place = {.fd = fd, .directory = fd, .name = "."};
    /* The root was made by somebody else. */
    if (!entry->name[0] && fchown(fd, entry->user, entry->group) != 0)
        return error_from_errno(errno, "set the owner of the tree");
    return set_metadata(&place, entry);
}

enum tree_kind
tree_target_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return TREE_DIRECTORY;
    case S_IFLNK:
        return TREE_SYMLINK;
    case S_IFBLK:
        return TREE_BLOCK;
    case S_IFCHR:
        return TREE_CHARACTER;
    case S_IFIFO:
        return TREE_FIFO;
    case S_IFSOCK:
        return TREE_SOCKET;
    default:
        return TREE_FILE;
    }
}

/* ---- contents ---- */

static struct error *
write_part(int fd, const struct tree_part *part, uint64_t offset, struct chunk_cache *chunks)
{
    const uint8_t *bytes;
    size_t size, done = 0;
    struct error *error = chunk_cache_get(chunks, &part->id, &bytes, &size);
    if (error)
        return error;
    if (part->offset > size || part->size > size - part->offset)
        error = error_new(CODE_DATA_LOSS, "a part of a file is behind the end of its chunk");
    while (!error && done < part->size) {
        ssize_t written = pwrite(fd, bytes + part->offset + done, (size_t)part->size - done,
                                 (off_t)(offset + done));
        if (written < 0 && errno != EINTR)
            error = error_from_errno(errno, "write a file");
        done += written > 0 ? (size_t)written : 0;
    }
    chunk_cache_release(chunks, bytes);
    return error;
}

static struct error *
write_list(int fd, const struct tree_part *list, uint64_t offset, struct chunk_cache *chunks,
           struct repository *repository, struct tree_part *parts)
{
    size_t count = 0;
    uint64_t size = 0;
    struct error *error = tree_list_load(repository, &list->id, parts, &count, &size);
    if (!error && size != list->size)
        error = error_new(CODE_DATA_LOSS, "the list of a file's parts is another one");
    for (size_t i = 0; i < count && !error; offset += parts[i++].size)
        if (parts[i].kind == TREE_DATA)
            error = write_part(fd, &parts[i], offset, chunks);
    return error;
}

static struct error *
write_contents(int fd, const struct tree_entry *entry, struct chunk_cache *chunks,
               struct repository *repository, struct tree_part *parts)
{
    uint64_t offset = 0;
    struct error *error = NULL;
    bool ends_in_hole = false;
    for (size_t i = 0; i < entry->part_count && !error; offset += entry->parts[i++].size) {
        const struct tree_part *part = &entry->parts[i];
        ends_in_hole = part->kind != TREE_DATA;
        if (part->kind == TREE_DATA)
            error = write_part(fd, part, offset, chunks);
        if (part->kind == TREE_LIST)
            error = write_list(fd, part, offset, chunks, repository, parts);
    }
    if (!error && ends_in_hole && ftruncate(fd, (off_t)entry->size) != 0)
        error = error_from_errno(errno, "set the size of a file");
    return error;
}

/* ---- entries ---- */

static int
try_to_make(int directory, const struct tree_entry *entry, int *fd)
{
    static const struct {
        enum tree_kind kind;
        mode_t type;
    } types[] = {{TREE_BLOCK, S_IFBLK},
                 {TREE_CHARACTER, S_IFCHR},
                 {TREE_FIFO, S_IFIFO},
                 {TREE_SOCKET, S_IFSOCK}};
    if (entry->kind == TREE_FILE) {
        *fd = openat(directory, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     NEW_MODE);
        return *fd < 0 ? -1 : 0;
    }
    if (entry->kind == TREE_SYMLINK)
        return symlinkat(entry->target, directory, entry->name);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (types[i].kind == entry->kind)
            return mknodat(directory, entry->name, types[i].type | NEW_MODE, entry->device);
    errno = EINVAL;
    return -1;
}

/* What is there was left by an import that was interrupted. */
static struct error *
make(int directory, const struct tree_entry *entry, int *fd)
{
    int result = try_to_make(directory, entry, fd);
    if (result != 0 && errno == EEXIST && unlinkat(directory, entry->name, 0) == 0)
        result = try_to_make(directory, entry, fd);
    return result != 0 ? error_from_errno(errno, "make %s", entry->name) : NULL;
}

struct error *
tree_target_make(int directory, const struct tree_entry *entry, struct chunk_cache *chunks,
                 struct repository *repository, struct tree_part *parts)
{
    int fd AUTO(files_close) = -1;
    struct error *error = make(directory, entry, &fd);
    if (!error && entry->kind == TREE_FILE)
        error = error_wrap(write_contents(fd, entry, chunks, repository, parts), "%s", entry->name);
    struct place place = {.fd = fd, .directory = directory, .name = entry->name};
    return error ? error : set_metadata(&place, entry);
}

struct error *
tree_target_link(int root, const char *path, int directory, const char *name)
{
    const char *slash = strrchr(path, '/');
    char *parent AUTO(memory_cleanup) = memory_string(path);
    int fd AUTO(files_close) = -1;
    parent[slash ? slash - path : 0] = 0;
    struct error *error = tree_target_open(root, parent, &fd);
    if (error)
        return error;
    const char *last = slash ? slash + 1 : path;
    int result = linkat(fd, last, directory, name, 0);
    if (result != 0 && errno == EEXIST && unlinkat(directory, name, 0) == 0)
        result = linkat(fd, last, directory, name, 0);
    return result != 0 ? error_from_errno(errno, "link %s", name) : NULL;
}
