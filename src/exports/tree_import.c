/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importing a tree: see tree_import.h.
 *
 * Threads take one entry of a leaf after the other. Directories, and files with several names, are
 * made by whoever takes them while the others wait; everything else at the same time. At the end
 * the directories get their metadata: to make entries would change their times, and a default
 * access list would change the entries.
 */
#include "exports/tree_import.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "exports/chunk_cache.h"
#include "exports/crew.h"
#include "exports/tree_target.h"
#include "store/cache_db.h"

#define THREADS 4u
#define LINKS_KIB 2048u
#define SAVE_MS 10000u

/* A directory that is open as long as somebody makes an entry in it. */
struct open_directory {
    int fd;
    unsigned users;
    char path[];
};

struct tree_import {
    const struct tree_import_options *options;
    struct chunk_cache *chunks;
    struct cache_db *links; /* the first path of files with several names, by inode */
    uint64_t leaf_number;
    uint64_t saved_ms;
    pthread_mutex_t lock; /* of everything below */
    struct tree_leaf leaf;
    struct open_directory *directory;
    uint64_t done_bytes;
    struct error *error;
};

/* ---- with the lock held ---- */

static void
release_directory(struct open_directory *directory)
{
    if (!directory || --directory->users)
        return;
    files_close(&directory->fd);
    free(directory);
}

/* The directory of the current entry. */
static struct error *
find_directory(struct tree_import *import)
{
    const char *path = import->leaf.directory;
    if (import->directory && !strcmp(import->directory->path, path))
        return NULL;
    release_directory(import->directory);
    size_t size = strlen(path) + 1;
    struct open_directory *directory = memory_new(sizeof *directory + size);
    directory->users = 1;
    memcpy(directory->path, path, size);
    import->directory = directory;
    struct error *error = tree_target_open(import->options->target, path, &directory->fd);
    return error;
}

static struct error *
check(struct tree_import *import)
{
    const struct progress *progress = import->options->progress;
    uint64_t expected = import->options->expected_bytes;
    if (progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "the import was cancelled");
    progress->report(progress->context, import->done_bytes,
                     import->done_bytes > expected ? import->done_bytes : expected);
    return NULL;
}

/* Makes it, or links it to the name that was made first. */
static struct error *
make_linked(struct tree_import *import, struct tree_part *parts)
{
    struct buffer path AUTO(buffer_clear) = {0};
    const struct tree_entry *entry = &import->leaf.entry;
    bool is_found;
    struct error *error =
        cache_db_read(import->links, &entry->inode, sizeof entry->inode, &path, &is_found);
    if (error)
        return error;
    if (is_found)
        return tree_target_link(import->options->target, buffer_text(&path), import->directory->fd,
                                entry->name);
    error = tree_target_make(import->directory->fd, entry, import->chunks,
                             import->options->repository, parts);
    buffer_print(&path, "%s%s%s", import->leaf.directory, import->leaf.directory[0] ? "/" : "",
                 entry->name);
    import->done_bytes += entry->size;
    return error ? error
                 : cache_db_put(import->links, &entry->inode, sizeof entry->inode, path.bytes,
                                path.size);
}

/* The next entry that can be made without the lock, or none. `parts` is space for those of it. */
static struct error *
take_entry(struct tree_import *import, struct tree_entry *entry, struct tree_part *parts,
           struct tree_part *list, struct open_directory **directory)
{
    struct error *error = NULL;
    *directory = NULL;
    while (!error && !(error = tree_leaf_next(&import->leaf)) && import->leaf.has_entry) {
        *entry = import->leaf.entry;
        error = check(import);
        if (!error && entry->kind == TREE_DIRECTORY)
            error = tree_target_make_directory(import->options->target, entry->name);
        if (error || entry->kind == TREE_DIRECTORY || entry->kind == TREE_CHILD)
            continue;
        error = find_directory(import);
        if (!error && entry->links > 1) {
            error = make_linked(import, list);
            continue;
        }
        if (error)
            break;
        if (entry->part_count)
            memcpy(parts, entry->parts, entry->part_count * sizeof *parts);
        entry->parts = parts;
        *directory = import->directory;
        (*directory)->users++;
        return NULL;
    }
    return error;
}

/* ---- threads ---- */

static void *
make_entries(void *context)
{
    struct tree_import *import = context;
    struct tree_part *parts = memory_new(TREE_PARTS_MAX * sizeof *parts);
    struct tree_part *list = memory_new(TREE_PARTS_MAX * sizeof *list);
    struct tree_entry entry;
    struct open_directory *directory;
    pthread_mutex_lock(&import->lock);
    while (!import->error) {
        import->error = take_entry(import, &entry, parts, list, &directory);
        if (import->error || !directory)
            break;
        pthread_mutex_unlock(&import->lock);
        struct error *error = tree_target_make(directory->fd, &entry, import->chunks,
                                               import->options->repository, list);
        pthread_mutex_lock(&import->lock);
        import->done_bytes += entry.size;
        release_directory(directory);
        if (error && !import->error)
            import->error = STEAL(error);
        error_free(error);
    }
    pthread_mutex_unlock(&import->lock);
    free(parts);
    free(list);
    return NULL;
}

static struct error *
run_threads(struct tree_import *import)
{
    struct error *error = crew_run(THREADS, make_entries, import);
    return error ? error : STEAL(import->error);
}

/* ---- leaves ---- */

static struct error *
save(struct tree_import *import, bool is_last)
{
    const struct tree_import_options *options = import->options;
    if (!is_last && (!options->save || clock_now_ms() - import->saved_ms < SAVE_MS))
        return NULL;
    struct error *error = files_sync(options->target);
    if (!error && options->save)
        error = options->save(options->context, import->leaf_number);
    import->saved_ms = clock_now_ms();
    return error;
}

static struct error *
make_leaf(struct tree_import *import, const struct tree_leaves *leaves)
{
    struct error *error = tree_leaf_load(&import->leaf, import->options->repository, &leaves->id);
    if (error)
        return error;
    chunk_cache_expect(import->chunks, import->leaf.ids, import->leaf.id_count);
    error = run_threads(import);
    chunk_cache_expect(import->chunks, NULL, 0);
    import->leaf_number++;
    return error ? error : save(import, false);
}

/* A leaf that was made before: only the files with several names are of interest. */
static struct error *
remember_leaf(struct tree_import *import, const struct tree_leaves *leaves)
{
    struct tree_leaf *leaf = &import->leaf;
    struct error *error = tree_leaf_load(leaf, import->options->repository, &leaves->id);
    while (!error && !(error = tree_leaf_next(leaf)) && leaf->has_entry) {
        struct buffer path AUTO(buffer_clear) = {0};
        bool is_new;
        if (leaf->entry.kind == TREE_CHILD || leaf->entry.links < 2)
            continue;
        buffer_print(&path, "%s%s%s", leaf->directory, leaf->directory[0] ? "/" : "",
                     leaf->entry.name);
        error = cache_db_add(import->links, &leaf->entry.inode, sizeof leaf->entry.inode,
                             path.bytes, path.size, &is_new);
    }
    import->done_bytes += leaves->sum.bytes;
    import->leaf_number++;
    return error;
}

static struct error *
finish_leaf(struct tree_import *import, const struct tree_leaves *leaves)
{
    struct tree_leaf *leaf = &import->leaf;
    struct error *error = tree_leaf_load(leaf, import->options->repository, &leaves->id);
    while (!error && !(error = tree_leaf_next(leaf)) && leaf->has_entry) {
        error = check(import);
        if (!error && leaf->entry.kind == TREE_DIRECTORY)
            error = tree_target_finish_directory(import->options->target, &leaf->entry);
    }
    return error;
}

static struct error *
each_leaf(struct tree_import *import, bool is_first)
{
    struct tree_leaves leaves AUTO(tree_leaves_close) = {0};
    const struct tree_import_options *options = import->options;
    struct error *error = tree_leaves_open(&leaves, options->repository, &options->root);
    while (!error && leaves.has_leaf) {
        if (!is_first)
            error = finish_leaf(import, &leaves);
        else if (import->leaf_number < options->saved_leaves)
            error = remember_leaf(import, &leaves);
        else
            error = make_leaf(import, &leaves);
        if (!error)
            error = tree_leaves_next(&leaves);
    }
    return error;
}

struct error *
tree_import_run(const struct tree_import_options *options)
{
    struct tree_import import = {.options = options, .saved_ms = clock_now_ms()};
    pthread_mutex_init(&import.lock, NULL);
    struct error *error = chunk_cache_open(options->repository, &import.chunks);
    if (!error)
        error = cache_db_open_temporary(options->work_directory, LINKS_KIB, &import.links);
    if (!error)
        error = each_leaf(&import, true);
    if (!error)
        error = save(&import, true);
    if (!error)
        error = each_leaf(&import, false);
    if (!error)
        error = files_sync(options->target);
    release_directory(import.directory);
    tree_leaf_close(&import.leaf);
    chunk_cache_close(import.chunks);
    cache_db_close(import.links);
    pthread_mutex_destroy(&import.lock);
    return error;
}
