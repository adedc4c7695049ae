/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a directory, sorted: see tree_source.h. Up to BATCH names are sorted in memory. Of
 * more, each batch is sorted and put into a table on disk, which gives them back in parts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/tree_walk.h"
#include "exports/tree_source.h"

#define BATCH 50000u
#define PART 10000u
#define NAMES_KIB 4096u /* of memory for the table */

/* Of a name in the table. */
struct facts {
    uint64_t inode;
    bool is_directory, is_file;
};

static int
compare_names(const void *a, const void *b)
{
    return strcmp(((const struct tree_name *)a)->name, ((const struct tree_name *)b)->name);
}

static void
clear_names(struct tree_listing *listing)
{
    arena_clear(&listing->arena);
    listing->count = 0;
}

static void
add_name(struct tree_listing *listing, const char *name, size_t size, const struct facts *facts)
{
    if (listing->count == listing->capacity) {
        listing->capacity = listing->capacity ? listing->capacity * 2 : 64;
        listing->names = memory_resize(listing->names, listing->capacity * sizeof *listing->names);
    }
    char *copy = arena_alloc(&listing->arena, size + 1);
    memcpy(copy, name, size);
    copy[size] = '\0';
    listing->names[listing->count++] =
        (struct tree_name){copy, facts->inode, facts->is_directory, facts->is_file};
}

/* ---- a table for very many names ---- */

static struct error *
move_to_table(struct tree_listing *listing, const char *work_directory)
{
    struct error *error =
        listing->all ? NULL : cache_db_open_temporary(work_directory, NAMES_KIB, &listing->all);
    /* In order, a table is filled with less work. */
    qsort(listing->names, listing->count, sizeof *listing->names, compare_names);
    for (size_t i = 0; !error && i < listing->count; i++) {
        const struct tree_name *name = &listing->names[i];
        struct facts facts;
        memset(&facts, 0, sizeof facts);
        facts.inode = name->inode;
        facts.is_directory = name->is_directory;
        facts.is_file = name->is_file;
        error = cache_db_put(listing->all, name->name, strlen(name->name), &facts, sizeof facts);
    }
    clear_names(listing);
    return error;
}

struct error *
tree_listing_next(struct tree_listing *listing)
{
    struct error *error = NULL;
    clear_names(listing);
    while (listing->all && !error && listing->count < PART) {
        struct facts facts;
        error = cache_db_next(listing->all, &listing->walk);
        if (error || !listing->walk.found)
            return error;
        if (listing->walk.value.size != sizeof facts)
            return error_new(CODE_INTERNAL, "the list of a directory is damaged");
        memcpy(&facts, listing->walk.value.bytes, sizeof facts);
        add_name(listing, (const char *)listing->walk.key.bytes, listing->walk.key.size, &facts);
    }
    return error;
}

/* ---- reading ---- */

static struct error *
keep_name(struct tree_listing *out, int fd, const struct dirent *entry)
{
    struct stat status;
    struct facts facts = {.inode = entry->d_ino,
                          .is_directory = entry->d_type == DT_DIR,
                          .is_file = entry->d_type == DT_REG};
    if (entry->d_type == DT_UNKNOWN) {
        if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            return error_from_errno(errno, "look at %s", entry->d_name);
        facts.is_directory = S_ISDIR(status.st_mode);
        facts.is_file = S_ISREG(status.st_mode);
    }
    add_name(out, entry->d_name, strlen(entry->d_name), &facts);
    return NULL;
}

static struct error *
read_names(DIR *directory, const char *work_directory, struct tree_listing *out)
{
    struct error *error = NULL;
    struct dirent *entry;
    arena_init(&out->arena, NULL, 0, SIZE_MAX);
    while (!error && (errno = 0, entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (out->count == BATCH)
            error = move_to_table(out, work_directory);
        if (!error)
            error = keep_name(out, dirfd(directory), entry);
    }
    if (!error && errno)
        error = error_from_errno(errno, "read a directory");
    if (!error && out->all) {
        error = move_to_table(out, work_directory);
        return error ? error : tree_listing_next(out);
    }
    if (!error && out->count)
        qsort(out->names, out->count, sizeof *out->names, compare_names);
    return error;
}

struct error *
tree_source_list(struct tree_source *source, const char *path, int *fd, struct tree_listing *out)
{
    struct tree_walk walk = {.top = source->root};
    DIR *directory = NULL;
    *out = (struct tree_listing){0};
    *fd = -1;
    struct error *error = tree_walk_open(&walk, path[0] ? path : ".", &directory);
    if (error)
        return error;
    if (!directory)
        return error_new(CODE_ABORTED, "the directory %s was removed", path);
    error = read_names(directory, source->work_directory, out);
    if (!error)
        *fd = fcntl(dirfd(directory), F_DUPFD_CLOEXEC, 0);
    if (!error && *fd < 0)
        error = error_from_errno(errno, "keep %s open", path);
    closedir(directory);
    return error;
}

void
tree_listing_clear(struct tree_listing *listing)
{
    arena_clear(&listing->arena);
    free(listing->names);
    cache_db_walk_clear(&listing->walk);
    cache_db_close(listing->all);
    *listing = (struct tree_listing){0};
}
