/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a tree that is exported: see tree_source.h. */
#include "exports/tree_source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "exports/tree_target.h"
#include "exports/varint.h"

#define ATTRIBUTE_BYTES (64u << 10)      /* the kernel's maximum for a list and for a value */
#define ATTRIBUTES (ATTRIBUTE_BYTES / 2) /* in a list: each has a byte and a NUL */
#define LINKS_KIB 2048u                  /* of memory */
#define BUFFER_BYTES (2u * CHUNKER_MOST)

struct error *
tree_source_open(struct tree_source *source, const struct tree_source_options *options)
{
    *source = (struct tree_source){.root = options->root,
                                   .chunks = options->chunks,
                                   .writer = options->writer,
                                   .work_directory = options->work_directory,
                                   .progress = options->progress,
                                   .expected_bytes = options->expected_bytes};
    chunker_init(&source->chunker, repository_chunker_secret(options->repository));
    source->attribute_names = memory_new(ATTRIBUTE_BYTES);
    source->attribute_value = memory_new(ATTRIBUTE_BYTES);
    source->sorted_names = memory_new(ATTRIBUTES * sizeof *source->sorted_names);
    source->bytes = memory_map(BUFFER_BYTES);
    source->parts = memory_new(TREE_PARTS_MAX * sizeof *source->parts);
    source->lists = memory_new(TREE_PARTS_MAX * sizeof *source->lists);
    return cache_db_open_temporary(options->work_directory, LINKS_KIB, &source->links);
}

void
tree_source_close(struct tree_source *source)
{
    cache_db_close(source->links);
    buffer_clear(&source->attributes);
    free(source->attribute_names);
    free(source->attribute_value);
    free(source->sorted_names);
    free(source->parts);
    free(source->lists);
    if (source->bytes)
        memory_unmap(source->bytes, BUFFER_BYTES);
}

/* ---- metadata ---- */

static struct error *
add_attribute(struct tree_source *source, int fd, const char *path, const char *name)
{
    ssize_t size = fd >= 0 ? fgetxattr(fd, name, source->attribute_value, ATTRIBUTE_BYTES)
                           : lgetxattr(path, name, source->attribute_value, ATTRIBUTE_BYTES);
    if (size < 0)
        return error_from_errno(errno, "read the extended attribute %s", name);
    varint_put_text(&source->attributes, name, strlen(name));
    varint_put(&source->attributes, (uint64_t)size);
    buffer_append(&source->attributes, source->attribute_value, (size_t)size);
    if (source->attributes.size > TREE_ATTRIBUTES_MAX)
        return error_new(CODE_FAILED_PRECONDITION,
                         "an entry has more than %u bytes of extended attributes",
                         TREE_ATTRIBUTES_MAX);
    return NULL;
}

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The order in which the file system lists them may differ from copy to copy. */
static struct error *
add_sorted(struct tree_source *source, int fd, const char *path, size_t size)
{
    const char **names = source->sorted_names;
    size_t count = 0;
    struct error *error = NULL;
    for (const char *name = source->attribute_names;
         name < source->attribute_names + size && count < ATTRIBUTES; name += strlen(name) + 1)
        if (!tree_target_is_repeated(name))
            names[count++] = name;
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 0; !error && i < count; i++)
        error = add_attribute(source, fd, path, names[i]);
    return error;
}

/* By the descriptor, or by the name in the directory if it is -1. */
static struct error *
read_attributes(struct tree_source *source, int fd, int directory, const char *name)
{
    char path[TREE_NAME_MAX + 64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", directory, name);
    ssize_t size = fd >= 0 ? flistxattr(fd, source->attribute_names, ATTRIBUTE_BYTES)
                           : llistxattr(path, source->attribute_names, ATTRIBUTE_BYTES);
    source->attributes.size = 0;
    if (size < 0 && errno == EOPNOTSUPP)
        return NULL;
    if (size < 0)
        return error_from_errno(errno, "list the extended attributes of %s", name);
    return size ? error_wrap(add_sorted(source, fd, path, (size_t)size), "%s", name) : NULL;
}

static struct tree_entry
make_entry(const struct tree_source *source, const char *name, const struct stat *status)
{
    struct tree_entry entry = {
        .kind = tree_target_kind(status->st_mode),
        .name = name,
        .name_size = strlen(name),
        .inode = status->st_ino,
        .mode = status->st_mode & 07777,
        .user = status->st_uid,
        .group = status->st_gid,
        .modified_s = status->st_mtim.tv_sec,
        .modified_ns = (uint32_t)status->st_mtim.tv_nsec,
        .changed_s = status->st_ctim.tv_sec,
        .changed_ns = (uint32_t)status->st_ctim.tv_nsec,
        .links = S_ISDIR(status->st_mode) ? 1 : status->st_nlink,
        .attributes = source->attributes.bytes,
        .attributes_size = source->attributes.size,
    };
    if (entry.kind == TREE_BLOCK || entry.kind == TREE_CHARACTER)
        entry.device = status->st_rdev;
    if (entry.kind == TREE_FILE)
        entry.size = (uint64_t)status->st_size;
    return entry;
}

struct error *
tree_source_add_directory(struct tree_source *source, const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_from_errno(errno, "look at the directory %s", path);
    struct error *error = read_attributes(source, fd, fd, ".");
    if (error)
        return error;
    struct tree_entry entry = make_entry(source, path, &status);
    source->counts.directories++;
    return tree_writer_add(source->writer, path, &entry);
}

struct error *
tree_source_add_child(struct tree_source *source, const char *directory,
                      const struct tree_name *name)
{
    struct tree_entry entry = {.kind = TREE_CHILD,
                               .name = name->name,
                               .name_size = strlen(name->name),
                               .inode = name->inode};
    return tree_writer_add(source->writer, directory, &entry);
}

/* ---- files ---- */

static struct error *
read_small(struct tree_source *source, int fd, const char *name, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t got = read(fd, source->bytes + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_from_errno(errno, "read %s", name)
                           : error_new(CODE_ABORTED, "%s became shorter", name);
        have += (size_t)got;
    }
    source->counts.bytes_read += size;
    source->counts.bytes += size;
    return NULL;
}

static struct error *
add_contents(struct tree_source *source, const char *directory, int fd, struct tree_entry *entry)
{
    /* A file that has holes is not small, whatever its size: they would be lost in a bundle. */
    bool is_small = entry->size < TREE_SMALL_FILE;
    if (is_small && entry->size > 4096)
        is_small = lseek(fd, 0, SEEK_HOLE) >= (off_t)entry->size && lseek(fd, 0, SEEK_SET) == 0;
    struct error *error = is_small ? read_small(source, fd, entry->name, (size_t)entry->size)
                                   : tree_contents_read(source, fd, entry->name, entry->size);
    if (error)
        return error;
    if (is_small)
        return tree_writer_add_small(source->writer, directory, entry, source->bytes);
    entry->parts = source->list_count ? source->lists : source->parts;
    entry->part_count = source->list_count ? source->list_count : source->part_count;
    return tree_writer_add(source->writer, directory, entry);
}

/* Another name of a file whose chunks are known. Small files are in a bundle that may be open. */
static struct error *
find_link(struct tree_source *source, struct tree_entry *entry, bool *is_found)
{
    struct buffer value AUTO(buffer_clear) = {0};
    struct error *error =
        cache_db_read(source->links, &entry->inode, sizeof entry->inode, &value, is_found);
    if (error || !*is_found)
        return error;
    source->part_count = value.size / sizeof *source->parts;
    memcpy(source->parts, value.bytes, value.size);
    entry->parts = source->parts;
    entry->part_count = source->part_count;
    return NULL;
}

static struct error *
remember_link(struct tree_source *source, const struct tree_entry *entry)
{
    return cache_db_put(source->links, &entry->inode, sizeof entry->inode, entry->parts,
                        entry->part_count * sizeof *entry->parts);
}

static bool
has_same_contents(const struct tree_entry *old, const struct tree_entry *entry, int64_t trusted_s)
{
    return old && old->kind == TREE_FILE && old->inode == entry->inode &&
           old->size == entry->size && old->modified_s == entry->modified_s &&
           old->modified_ns == entry->modified_ns && old->changed_s == entry->changed_s &&
           old->changed_ns == entry->changed_ns && entry->changed_s < trusted_s;
}

static struct error *
add_file(struct tree_source *source, const char *directory, int at, struct tree_entry *entry,
         const struct tree_entry *old, int64_t trusted_s)
{
    bool is_link = false, is_large = entry->size >= TREE_SMALL_FILE;
    int fd AUTO(files_close) = files_open_quietly(at, entry->name, O_NONBLOCK);
    if (fd < 0)
        return error_from_errno(errno, "open %s", entry->name);
    struct error *error = read_attributes(source, fd, at, entry->name);
    if (error)
        return error;
    entry->attributes = source->attributes.bytes;
    entry->attributes_size = source->attributes.size;
    source->counts.files++;
    if (has_same_contents(old, entry, trusted_s)) {
        entry->parts = old->parts;
        entry->part_count = old->part_count;
        source->counts.bytes += entry->size;
        return tree_writer_add(source->writer, directory, entry);
    }
    if (entry->links > 1 && is_large)
        error = find_link(source, entry, &is_link);
    if (error)
        return error;
    if (is_link)
        return tree_writer_add(source->writer, directory, entry);
    error = add_contents(source, directory, fd, entry);
    return !error && entry->links > 1 && is_large ? remember_link(source, entry) : error;
}

static struct error *
read_target(struct tree_source *source, int directory, struct tree_entry *entry)
{
    ssize_t size = readlinkat(directory, entry->name, source->target, sizeof source->target);
    if (size < 0 || size > (ssize_t)TREE_PATH_MAX)
        return error_from_errno(size < 0 ? errno : ENAMETOOLONG, "read the symbolic link %s",
                                entry->name);
    source->target[size] = 0;
    entry->target = source->target;
    entry->target_size = (size_t)size;
    return NULL;
}

struct error *
tree_source_add(struct tree_source *source, const char *directory, int fd, const char *name,
                const struct tree_entry *old, int64_t trusted_s)
{
    struct stat status;
    if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return error_from_errno(errno, "look at %s", name);
    struct tree_entry entry = make_entry(source, name, &status);
    if (entry.kind == TREE_FILE)
        return add_file(source, directory, fd, &entry, old, trusted_s);
    struct error *error = read_attributes(source, -1, fd, name);
    entry.attributes = source->attributes.bytes;
    entry.attributes_size = source->attributes.size;
    if (!error && entry.kind == TREE_SYMLINK)
        error = read_target(source, fd, &entry);
    source->counts.files++;
    return error ? error : tree_writer_add(source->writer, directory, &entry);
}
