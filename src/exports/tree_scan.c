/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting a directory and everything below it by walking over it: see tree_export.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/tree_walk.h"
#include "exports/tree_export.h"

#define SAVE_MS 30000u
/* A leaf has at most about 256 MiB in large files, and a save is possible only at its end. */
#define SAVE_BYTES (UINT64_C(128) << 20)

/* ---- going on where an earlier export was ---- */

bool
tree_export_has(const struct tree_export *export, const void *key, size_t size)
{
    return export->last_key.size &&
           tree_entry_compare(key, size, export->last_key.bytes, export->last_key.size) <= 0;
}

/* Whether the directory and everything below it was exported before. */
static bool
is_subtree_exported(const struct tree_export *export, const char *path)
{
    struct buffer end AUTO(buffer_clear) = {0};
    tree_entry_end_key(&end, path);
    return tree_export_has(export, end.bytes, end.size);
}

static bool
is_entry_exported(const struct tree_export *export, const char *directory, const char *name)
{
    struct buffer key AUTO(buffer_clear) = {0};
    if (!export->last_key.size)
        return false;
    tree_entry_key(&key, directory, name);
    return tree_export_has(export, key.bytes, key.size);
}

struct error *
tree_export_save(struct tree_export *export)
{
    const struct tree_export_options *options = export->options;
    struct repository_id root;
    bool is_time = clock_now_ms() - export->saved_ms >= SAVE_MS ||
                   export->source.counts.bytes - export->saved_bytes >= SAVE_BYTES;
    if (!options->save || !is_time || !tree_writer_is_between_leaves(export->writer))
        return NULL;
    struct error *error = tree_writer_save(export->writer, &root);
    if (!error)
        error = repository_writer_flush(options->chunks);
    if (!error)
        error = options->save(options->context, &root);
    export->saved_ms = clock_now_ms();
    export->saved_bytes = export->source.counts.bytes;
    return error;
}

/* ---- the walk ---- */

/* Subdirectories of a directory, which are walked over after its own entries. */
struct subdirectories {
    struct arena arena;
    const char **names;
    size_t count, capacity;
};

static void
add_subdirectory(struct subdirectories *subdirectories, const char *name)
{
    if (subdirectories->count == subdirectories->capacity) {
        subdirectories->capacity = subdirectories->capacity ? subdirectories->capacity * 2 : 16;
        subdirectories->names = memory_resize(
            subdirectories->names, subdirectories->capacity * sizeof *subdirectories->names);
    }
    subdirectories->names[subdirectories->count++] = arena_string(&subdirectories->arena, name);
}

static void
clear_subdirectories(struct subdirectories *subdirectories)
{
    arena_clear(&subdirectories->arena);
    free(subdirectories->names);
}

static struct error *
add_part(struct tree_export *export, const char *path, int fd, const struct tree_listing *listing,
         struct subdirectories *subdirectories)
{
    struct error *error = NULL;
    tree_ahead_begin(export->ahead, fd, listing);
    for (size_t i = 0; !error && i < listing->count; i++) {
        const struct tree_name *name = &listing->names[i];
        if (name->is_directory)
            add_subdirectory(subdirectories, name->name);
        if (is_entry_exported(export, path, name->name))
            continue;
        tree_ahead_move(export->ahead, i);
        error = name->is_directory
                    ? tree_source_add_child(&export->source, path, name)
                    : tree_source_add(&export->source, path, fd, name->name, NULL, 0);
        if (!error)
            error = tree_source_check(&export->source);
        if (!error)
            error = tree_export_save(export);
    }
    tree_ahead_end(export->ahead);
    return error;
}

static struct error *
add_entries(struct tree_export *export, struct tree_walk *walk, const char *path, int fd,
            struct tree_listing *listing)
{
    struct subdirectories subdirectories AUTO(clear_subdirectories) = {0};
    arena_init(&subdirectories.arena, NULL, 0, SIZE_MAX);
    struct error *error = NULL;
    while (!error && listing->count) {
        error = add_part(export, path, fd, listing, &subdirectories);
        if (!error)
            error = tree_listing_next(listing);
    }
    for (size_t i = subdirectories.count; !error && i > 0; i--)
        tree_walk_push(walk, path[0] ? path : ".", subdirectories.names[i - 1], false);
    return error;
}

static struct error *
add_directory(struct tree_export *export, struct tree_walk *walk, const char *path)
{
    struct tree_listing listing AUTO(tree_listing_clear) = {0};
    int fd AUTO(files_close) = -1;
    if (export->last_key.size && is_subtree_exported(export, path))
        return NULL;
    struct error *error = tree_source_list(&export->source, path, &fd, &listing);
    if (!error && !is_entry_exported(export, path, ""))
        error = tree_source_add_directory(&export->source, path, fd);
    return error ? error : add_entries(export, walk, path, fd, &listing);
}

struct error *
tree_scan_walk(struct tree_export *export, const char *path)
{
    struct tree_walk walk = {.top = export->options->root};
    struct tree_step *step;
    struct error *error = NULL;
    tree_walk_push(&walk, ".", path[0] ? path : ".", false);
    while (!error && (step = tree_walk_pop(&walk))) {
        error = add_directory(export, &walk, strcmp(step->path, ".") ? step->path : "");
        free(step);
    }
    tree_walk_clear(&walk);
    return error;
}
