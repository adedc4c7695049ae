/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting a directory and everything below it by walking over it: see tree_export.h. */
#include "base/clock.h"
#include "base/files.h"
#include "exports/tree_export.h"

#define WAITING_KIB 4096u /* of memory */
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

/* ---- the directories that wait ---- */

/*
 * Subdirectories are walked over after their directory's own entries. They wait in a table, in the
 * order of the walk: memory does not grow with their number.
 */
static struct error *
add_waiting(struct tree_export *export, const char *directory, const char *name)
{
    struct buffer path AUTO(buffer_clear) = {0}, key AUTO(buffer_clear) = {0};
    buffer_print(&path, "%s%s%s", directory, directory[0] ? "/" : "", name);
    if (path.size > TREE_PATH_MAX)
        return error_new(CODE_FAILED_PRECONDITION, "the tree is deeper than a path can name");
    tree_entry_key(&key, buffer_text(&path), "");
    return cache_db_put(export->waiting, key.bytes, key.size, "", 0);
}

/* `*is_there` is false if none is left. */
static struct error *
take_waiting(struct tree_export *export, char path[TREE_PATH_MAX + 1], bool *is_there)
{
    struct cache_db_walk first AUTO(cache_db_walk_clear) = {0};
    char name[TREE_NAME_MAX + 1];
    struct error *error = cache_db_next(export->waiting, &first);
    *is_there = !error && first.found;
    if (!*is_there)
        return error;
    if (!tree_entry_read_key(first.key.bytes, first.key.size, path, name))
        return error_new(CODE_INTERNAL, "the list of directories is damaged");
    return cache_db_delete(export->waiting, first.key.bytes, first.key.size);
}

/* ---- the walk ---- */

static struct error *
add_part(struct tree_export *export, const char *path, int fd, const struct tree_listing *listing)
{
    struct error *error = NULL;
    tree_ahead_begin(export->ahead, fd, listing);
    for (size_t i = 0; !error && i < listing->count; i++) {
        const struct tree_name *name = &listing->names[i];
        if (name->is_directory)
            error = add_waiting(export, path, name->name);
        if (error || is_entry_exported(export, path, name->name))
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
add_directory(struct tree_export *export, const char *path)
{
    struct tree_listing listing AUTO(tree_listing_clear) = {0};
    int fd AUTO(files_close) = -1;
    if (export->last_key.size && is_subtree_exported(export, path))
        return NULL;
    struct error *error = tree_source_list(&export->source, path, &fd, &listing);
    if (!error && !is_entry_exported(export, path, ""))
        error = tree_source_add_directory(&export->source, path, fd);
    while (!error && listing.count) {
        error = add_part(export, path, fd, &listing);
        if (!error)
            error = tree_listing_next(&listing);
    }
    return error;
}

struct error *
tree_scan_walk(struct tree_export *export, const char *path)
{
    char next[TREE_PATH_MAX + 1];
    bool is_there = true;
    struct error *error = export->waiting ? NULL
                                          : cache_db_open_temporary(export->options->work_directory,
                                                                    WAITING_KIB, &export->waiting);
    if (!error)
        error = add_directory(export, path);
    while (!error && !(error = take_waiting(export, next, &is_there)) && is_there)
        error = add_directory(export, next);
    return error;
}
