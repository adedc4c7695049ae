/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing a tree with the repository: see compare.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/tree_walk.h"
#include "exports/chunk_cache.h"
#include "exports/compare.h"
#include "exports/tree_target.h"
#include "store/cache_db.h"

#define VALUE_BYTES (64u << 10)
#define LINKS_KIB 1024u /* of memory */

struct comparison {
    const struct compare_options *options;
    struct chunk_cache *chunks;
    struct tree_leaf leaf;
    struct tree_part *list;
    uint8_t *bytes; /* of a part */
    uint64_t done_bytes;
    int directory;
    char path[TREE_PATH_MAX + 1]; /* of it */
    uint64_t there, expected;     /* its names; there are none yet if it is -1 */
    struct cache_db *links;       /* inodes of files with several names, in both directions */
};

static struct error *
differs(const struct comparison *comparison, const char *what)
{
    const struct tree_leaf *leaf = &comparison->leaf;
    bool is_directory = leaf->entry.kind == TREE_DIRECTORY;
    return error_new(CODE_DATA_LOSS, "the %s of \"%s%s%s\" differ", what, leaf->directory,
                     is_directory ? "" : "/", is_directory ? "" : leaf->entry.name);
}

/* ---- contents ---- */

static struct error *
compare_part(struct comparison *comparison, int fd, const struct tree_part *part, uint64_t offset)
{
    const struct progress *progress = comparison->options->progress;
    const uint8_t *expected;
    size_t size;
    struct error *error = chunk_cache_get(comparison->chunks, &part->id, &expected, &size);
    if (error)
        return error;
    bool is_inside = part->offset <= size && part->size <= size - part->offset;
    ssize_t got = is_inside ? pread(fd, comparison->bytes, (size_t)part->size, (off_t)offset) : -1;
    bool is_same = got == (ssize_t)part->size &&
                   !memcmp(comparison->bytes, expected + part->offset, (size_t)part->size);
    chunk_cache_release(comparison->chunks, expected);
    comparison->done_bytes += part->size;
    progress->report(progress->context, comparison->done_bytes, 0);
    return is_same ? NULL : differs(comparison, "contents");
}

static bool
is_zero(const uint8_t *bytes, size_t size)
{
    return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

/* The bytes of a hole may have become zeros that are stored. */
static struct error *
compare_hole(struct comparison *comparison, int fd, uint64_t size, uint64_t offset)
{
    const struct progress *progress = comparison->options->progress;
    uint64_t end = offset + size;
    while (offset < end) {
        off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
        if (data < 0 && errno != ENXIO)
            return error_from_errno(errno, "find the data of %s", comparison->leaf.entry.name);
        if (data < 0 || (uint64_t)data >= end)
            return NULL;
        uint64_t left = end - (uint64_t)data;
        ssize_t got =
            pread(fd, comparison->bytes,
                  left < REPOSITORY_CHUNK_MAX ? (size_t)left : REPOSITORY_CHUNK_MAX, data);
        if (got <= 0 || !is_zero(comparison->bytes, (size_t)got))
            return differs(comparison, "contents");
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "the comparison was cancelled");
        offset = (uint64_t)data + (uint64_t)got;
    }
    return NULL;
}

static struct error *
compare_list(struct comparison *comparison, int fd, const struct tree_part *list, uint64_t offset)
{
    size_t count = 0;
    uint64_t size;
    struct error *error =
        tree_list_load(comparison->options->repository, &list->id, comparison->list, &count, &size);
    for (size_t i = 0; !error && i < count; offset += comparison->list[i++].size)
        error = comparison->list[i].kind == TREE_DATA
                    ? compare_part(comparison, fd, &comparison->list[i], offset)
                    : compare_hole(comparison, fd, comparison->list[i].size, offset);
    return error;
}

static struct error *
compare_contents(struct comparison *comparison, const struct tree_entry *entry)
{
    uint64_t offset = 0;
    int fd AUTO(files_close) = files_open_quietly(comparison->directory, entry->name, O_NONBLOCK);
    struct error *error = fd < 0 ? error_from_errno(errno, "open %s", entry->name) : NULL;
    for (size_t i = 0; !error && i < entry->part_count; offset += entry->parts[i++].size) {
        const struct tree_part *part = &entry->parts[i];
        if (part->kind == TREE_DATA)
            error = compare_part(comparison, fd, part, offset);
        if (part->kind == TREE_LIST)
            error = compare_list(comparison, fd, part, offset);
        if (part->kind == TREE_HOLE)
            error = compare_hole(comparison, fd, part->size, offset);
    }
    return error;
}

/* ---- metadata ---- */

/* Those that no entry of the manifest has for other reasons than that the source had none. */
static bool
may_be_gained(const char *name)
{
    bool is_of_host = !strncmp(name, "security.", strlen("security.")) &&
                      strcmp(name, "security.capability") != 0;
    return is_of_host || tree_target_may_lose(name) || tree_target_is_repeated(name);
}

/* Each that was exported is there, so it is enough to count them. */
static struct error *
count_attributes(struct comparison *comparison, const char *path, size_t expected)
{
    const char *names = (const char *)comparison->bytes;
    size_t there = 0;
    ssize_t size = llistxattr(path, (char *)comparison->bytes, VALUE_BYTES);
    if (size < 0 && errno != EOPNOTSUPP)
        return error_from_errno(errno, "list the extended attributes of %s",
                                comparison->leaf.entry.name);
    for (const char *name = names; name < names + size; name += strlen(name) + 1)
        there += !may_be_gained(name);
    return there == expected ? NULL : differs(comparison, "extended attributes");
}

static struct error *
compare_attributes(struct comparison *comparison, const struct tree_entry *entry)
{
    char path[TREE_NAME_MAX + 64];
    struct varint_reader in = {entry->attributes, entry->attributes + entry->attributes_size,
                               false};
    const char *name;
    const uint8_t *value;
    size_t size, expected = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", comparison->directory,
             entry->kind == TREE_DIRECTORY ? "." : entry->name);
    while (tree_attributes_next(&in, &name, &value, &size)) {
        ssize_t got = lgetxattr(path, name, comparison->bytes, VALUE_BYTES);
        bool is_same = got == (ssize_t)size && (!size || !memcmp(comparison->bytes, value, size));
        if (!is_same && !tree_target_may_lose(name))
            return differs(comparison, "extended attributes");
        expected += !may_be_gained(name);
    }
    return count_attributes(comparison, path, expected);
}

/* ---- files with several names ---- */

struct link_key {
    char side; /* 'e' for an inode that was exported, 't' for one that is there */
    uint8_t inode[sizeof(uint64_t)];
};

/* The first name decides which inode it is on the other side. */
static struct error *
pair_inodes(struct comparison *comparison, char side, uint64_t inode, uint64_t other, bool *is_same)
{
    struct link_key key = {.side = side};
    uint64_t known;
    bool is_found;
    memcpy(key.inode, &inode, sizeof inode);
    struct error *error =
        cache_db_get(comparison->links, &key, sizeof key, &known, sizeof known, &is_found);
    if (!error && !is_found)
        error = cache_db_put(comparison->links, &key, sizeof key, &other, sizeof other);
    *is_same = error || !is_found || known == other;
    return error;
}

static struct error *
compare_links(struct comparison *comparison, const struct tree_entry *entry,
              const struct stat *status)
{
    bool is_same = true, is_same_back = true;
    if (entry->kind == TREE_DIRECTORY)
        return NULL;
    if (entry->links <= 1)
        return status->st_nlink == 1 ? NULL : differs(comparison, "hard links");
    struct error *error =
        pair_inodes(comparison, 'e', entry->inode, (uint64_t)status->st_ino, &is_same);
    if (!error)
        error = pair_inodes(comparison, 't', (uint64_t)status->st_ino, entry->inode, &is_same_back);
    if (error)
        return error;
    return is_same && is_same_back ? NULL : differs(comparison, "hard links");
}

/* ---- all metadata ---- */

static struct error *
compare_metadata(struct comparison *comparison, const struct tree_entry *entry)
{
    struct stat status;
    const char *name = entry->kind == TREE_DIRECTORY ? "." : entry->name;
    if (fstatat(comparison->directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? error_new(CODE_DATA_LOSS, "\"%s\" is missing in \"%s\"",
                                           entry->name, comparison->leaf.directory)
                               : error_from_errno(errno, "look at %s", entry->name);
    if (tree_target_kind(status.st_mode) != entry->kind)
        return differs(comparison, "types");
    if (entry->kind != TREE_SYMLINK && (status.st_mode & 07777) != entry->mode)
        return differs(comparison, "modes");
    if (status.st_uid != entry->user || status.st_gid != entry->group)
        return differs(comparison, "owners");
    if (status.st_mtim.tv_sec != entry->modified_s || status.st_mtim.tv_nsec != entry->modified_ns)
        return differs(comparison, "times");
    if (entry->kind == TREE_FILE && (uint64_t)status.st_size != entry->size)
        return differs(comparison, "sizes");
    bool is_device = entry->kind == TREE_BLOCK || entry->kind == TREE_CHARACTER;
    if (is_device && status.st_rdev != entry->device)
        return differs(comparison, "device numbers");
    struct error *error = compare_links(comparison, entry, &status);
    if (error)
        return error;
    return compare_attributes(comparison, entry);
}

static struct error *
compare_target(struct comparison *comparison, const struct tree_entry *entry)
{
    char target[TREE_PATH_MAX + 1];
    ssize_t size = readlinkat(comparison->directory, entry->name, target, sizeof target);
    bool is_same =
        size == (ssize_t)entry->target_size && !memcmp(target, entry->target, entry->target_size);
    return is_same ? NULL : differs(comparison, "targets");
}

/* ---- names ---- */

/* Each name that was exported is looked for, so it is enough to count them. */
static struct error *
count_names(struct comparison *comparison)
{
    struct tree_walk walk = {.top = comparison->options->fd};
    const char *path = comparison->leaf.directory;
    DIR *directory = NULL;
    struct error *error = tree_walk_open(&walk, path[0] ? path : ".", &directory);
    comparison->there = comparison->expected = 0;
    if (error || !directory)
        return error;
    while (tree_walk_read(directory, &error))
        comparison->there++;
    closedir(directory);
    return error;
}

/* The directory's last entry was compared. */
static struct error *
compare_names(const struct comparison *comparison)
{
    return comparison->there == comparison->expected
               ? NULL
               : error_new(CODE_DATA_LOSS,
                           "the directory \"%s\" has %llu entries, and %llu were exported",
                           comparison->path, (unsigned long long)comparison->there,
                           (unsigned long long)comparison->expected);
}

/* ---- all of it ---- */

static struct error *
open_directory(struct comparison *comparison)
{
    const char *path = comparison->leaf.directory;
    if (comparison->directory >= 0 && !strcmp(comparison->path, path))
        return NULL;
    struct error *error = comparison->directory >= 0 ? compare_names(comparison) : NULL;
    files_close(&comparison->directory);
    memcpy(comparison->path, path, strlen(path) + 1);
    if (!error)
        error = tree_target_open(comparison->options->fd, path, &comparison->directory);
    return error ? error : count_names(comparison);
}

static struct error *
compare_entry(struct comparison *comparison)
{
    const struct tree_entry *entry = &comparison->leaf.entry;
    const struct progress *progress = comparison->options->progress;
    if (progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "the comparison was cancelled");
    struct error *error = open_directory(comparison);
    comparison->expected += entry->kind != TREE_DIRECTORY;
    if (entry->kind == TREE_CHILD)
        return error;
    if (!error)
        error = compare_metadata(comparison, entry);
    if (!error && entry->kind == TREE_FILE)
        error = compare_contents(comparison, entry);
    if (!error && entry->kind == TREE_SYMLINK)
        error = compare_target(comparison, entry);
    return error;
}

static struct error *
compare_leaf(struct comparison *comparison, const struct repository_id *id)
{
    struct tree_leaf *leaf = &comparison->leaf;
    struct error *error = tree_leaf_load(leaf, comparison->options->repository, id);
    if (error)
        return error;
    chunk_cache_expect(comparison->chunks, leaf->ids, leaf->id_count);
    while (!error && !(error = tree_leaf_next(leaf)) && leaf->has_entry)
        error = compare_entry(comparison);
    chunk_cache_expect(comparison->chunks, NULL, 0);
    return error;
}

struct error *
compare_tree(const struct compare_options *options)
{
    struct tree_leaves leaves AUTO(tree_leaves_close) = {0};
    struct comparison comparison = {.options = options,
                                    .list = memory_new(TREE_PARTS_MAX * sizeof(struct tree_part)),
                                    .bytes = memory_map(REPOSITORY_CHUNK_MAX),
                                    .directory = -1};
    struct error *error = chunk_cache_open(options->repository, &comparison.chunks);
    if (!error)
        error = cache_db_open_temporary(repository_work_directory(options->repository), LINKS_KIB,
                                        &comparison.links);
    if (!error)
        error = tree_leaves_open(&leaves, options->repository, &options->root);
    while (!error && leaves.has_leaf) {
        error = compare_leaf(&comparison, &leaves.id);
        if (!error)
            error = tree_leaves_next(&leaves);
    }
    if (!error && comparison.directory >= 0)
        error = compare_names(&comparison);
    chunk_cache_close(comparison.chunks);
    cache_db_close(comparison.links);
    tree_leaf_close(&comparison.leaf);
    files_close(&comparison.directory);
    memory_cleanup(&comparison.list);
    memory_unmap(comparison.bytes, REPOSITORY_CHUNK_MAX);
    return error;
}
