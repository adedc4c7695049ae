/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporting what has changed in a tree: the manifest of the base and a sorted list of changes are
 * merged. See tree_export.h.
 *
 * The list has keys (tree_entry.h) and says for each what to do:
 *
 *     entry      a file or the like has changed: it is read again
 *     directory  the directory is listed again. Entries with the same inode that are not in the
 *                list are as before. Subdirectories that are new or gone are added to the list.
 *     new        the directory is another than before, or was not there: it is walked over, with
 *                everything below it
 *     gone       the directory and everything below it is left out
 *
 * A leaf of the base between two keys of the list is used unread.
 *
 * An export that continues goes through the same steps, and leaves out what was exported before. It
 * lists the directories again, because that is how it finds subdirectories that are new or gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/memory.h"
#include "exports/tree_export.h"
#include "store/cache_db.h"

#define CHANGES_KIB 4096u /* of memory */
#define TRUST_S 2         /* a file that changed just before the snapshot may have changed again */

enum change { CHANGE_ENTRY = 'e', CHANGE_DIRECTORY = 'd', CHANGE_NEW = 'n', CHANGE_GONE = 'g' };

/* The position in the base's manifest. */
struct base_cursor {
    struct tree_leaves leaves, ahead; /* the current leaf, and the one behind it */
    struct tree_leaf leaf;
    bool is_loaded;
    bool is_at_start; /* no entry of the loaded leaf is used */
};

struct merge {
    struct tree_export *export;
    struct cache_db *changes;
    struct base_cursor base;
    struct buffer done; /* changes below this key are dealt with */
    struct buffer key;
    int64_t trusted_s;
    char *open_path; /* of the directory that is open */
    int open_fd;
};

static int
compare(const struct buffer *a, const struct buffer *b)
{
    return tree_entry_compare(a->bytes, a->size, b->bytes, b->size);
}

/* ---- changes ---- */

static struct error *
put_change(struct merge *merge, const char *directory, const char *name, enum change change)
{
    uint8_t value = (uint8_t)change;
    struct buffer key AUTO(buffer_clear) = {0};
    tree_entry_key(&key, directory, name);
    return cache_db_put(merge->changes, key.bytes, key.size, &value, sizeof value);
}

static char *
join(const char *directory, const char *name)
{
    struct buffer path = {0};
    buffer_print(&path, "%s%s%s", directory, directory[0] ? "/" : "", name);
    buffer_text(&path);
    return (char *)path.bytes;
}

static struct error *
put_subtree(struct merge *merge, const char *directory, const char *name, enum change change)
{
    char *path AUTO(memory_cleanup) = join(directory, name);
    return put_change(merge, path, "", change);
}

static struct error *
take_change(void *context, const char *path, bool is_directory)
{
    struct merge *merge = context;
    const struct progress *progress = merge->export->options->progress;
    const char *slash = strrchr(path, '/');
    if (progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "the export was cancelled");
    if (strlen(path) > TREE_PATH_MAX)
        return error_new(CODE_FAILED_PRECONDITION, "the tree is deeper than a path can name");
    if (is_directory)
        return put_change(merge, path, "", CHANGE_DIRECTORY);
    char *directory AUTO(memory_cleanup) = memory_string(path);
    directory[slash ? slash - path : 0] = 0;
    return put_change(merge, directory, slash ? slash + 1 : path, CHANGE_ENTRY);
}

/* ---- the base ---- */

static struct error *
open_base(struct base_cursor *base, struct repository *repository, const struct repository_id *root)
{
    struct error *error = tree_leaves_open(&base->leaves, repository, root);
    if (!error)
        error = tree_leaves_open(&base->ahead, repository, root);
    return error ? error : tree_leaves_next(&base->ahead);
}

static struct error *
next_leaf(struct base_cursor *base)
{
    base->is_loaded = false;
    struct error *error = tree_leaves_next(&base->leaves);
    return !error && base->ahead.has_leaf ? tree_leaves_next(&base->ahead) : error;
}

static struct error *
load_leaf(struct base_cursor *base)
{
    struct error *error = tree_leaf_load(&base->leaf, base->leaves.repository, &base->leaves.id);
    base->is_loaded = base->is_at_start = true;
    return error ? error : tree_leaf_next(&base->leaf);
}

static struct error *
use_entry(struct base_cursor *base)
{
    base->is_at_start = false;
    return tree_leaf_next(&base->leaf);
}

/* Makes the next entry the current one. There is none if no leaf is loaded then. */
static struct error *
find_entry(struct base_cursor *base)
{
    struct error *error = NULL;
    while (!error) {
        if (base->is_loaded && base->leaf.has_entry)
            return NULL;
        if (base->is_loaded)
            error = next_leaf(base);
        else if (base->leaves.has_leaf)
            error = load_leaf(base);
        else
            return NULL;
    }
    return error;
}

/* Whether the whole leaf is below the key; NULL: everything is. */
static bool
is_leaf_below(const struct base_cursor *base, const struct buffer *key)
{
    if (!key)
        return true;
    return base->ahead.has_leaf &&
           tree_entry_compare(base->ahead.key, base->ahead.key_size, key->bytes, key->size) <= 0;
}

static bool
is_leaf_behind(const struct base_cursor *base, const struct buffer *key)
{
    return key &&
           tree_entry_compare(base->leaves.key, base->leaves.key_size, key->bytes, key->size) >= 0;
}

/* ---- what was exported before ---- */

static bool
is_exported(const struct merge *merge, const struct buffer *key)
{
    return tree_export_has(merge->export, key->bytes, key->size);
}

static bool
is_leaf_exported(const struct merge *merge)
{
    const struct tree_leaves *ahead = &merge->base.ahead;
    return ahead->has_leaf && tree_export_has(merge->export, ahead->key, ahead->key_size);
}

/* Then its entries are looked at one by one. */
static bool
is_leaf_partly_exported(const struct merge *merge)
{
    const struct tree_leaves *leaves = &merge->base.leaves;
    return !is_leaf_exported(merge) &&
           tree_export_has(merge->export, leaves->key, leaves->key_size);
}

/* ---- passing over the base ---- */

/* Copies or drops a leaf of which nothing is used yet. */
static struct error *
pass_leaf(struct merge *merge, bool copies)
{
    struct tree_leaves *leaves = &merge->base.leaves;
    struct error *error = copies ? tree_writer_add_leaf(merge->export->writer, leaves->key,
                                                        leaves->key_size, &leaves->id, &leaves->sum)
                                 : NULL;
    return error ? error : next_leaf(&merge->base);
}

static struct error *
pass_entries(struct merge *merge, const struct buffer *until, bool copies)
{
    struct base_cursor *base = &merge->base;
    struct error *error = NULL;
    while (!error && base->leaf.has_entry && (!until || compare(&base->leaf.key, until) < 0)) {
        if (copies && !is_exported(merge, &base->leaf.key))
            error = tree_writer_add(merge->export->writer, base->leaf.directory, &base->leaf.entry);
        if (!error)
            error = use_entry(base);
    }
    return error;
}

/* Copies or drops everything below the key; NULL: everything. */
static struct error *
pass(struct merge *merge, const struct buffer *until, bool copies)
{
    struct base_cursor *base = &merge->base;
    struct error *error = NULL;
    while (!error && base->leaves.has_leaf) {
        bool is_whole = !base->is_loaded || base->is_at_start;
        bool is_free = !copies || is_leaf_exported(merge) ||
                       (tree_writer_is_between_leaves(merge->export->writer) &&
                        !is_leaf_partly_exported(merge));
        if (is_whole && is_leaf_behind(base, until))
            return NULL;
        if (is_whole && is_free && is_leaf_below(base, until)) {
            error = pass_leaf(merge, copies && !is_leaf_exported(merge));
            continue;
        }
        if (!base->is_loaded)
            error = load_leaf(base);
        if (!error)
            error = pass_entries(merge, until, copies);
        if (!error && base->leaf.has_entry)
            return NULL;
        if (!error)
            error = next_leaf(base);
    }
    return error;
}

/* The entry of the base with this key; NULL if there is none. Everything below it is passed. */
static struct error *
peek(struct merge *merge, const struct buffer *key, const struct tree_entry **out)
{
    struct base_cursor *base = &merge->base;
    *out = NULL;
    struct error *error = NULL;
    if (!base->is_loaded && base->leaves.has_leaf &&
        tree_entry_compare(base->leaves.key, base->leaves.key_size, key->bytes, key->size) == 0)
        error = load_leaf(base);
    if (!error && base->is_loaded && base->leaf.has_entry && compare(&base->leaf.key, key) == 0)
        *out = &base->leaf.entry;
    return error;
}

/* ---- one entry ---- */

static struct error *
open_directory(struct merge *merge, const char *path)
{
    if (merge->open_path && !strcmp(merge->open_path, path))
        return NULL;
    files_close(&merge->open_fd);
    free(merge->open_path);
    merge->open_path = memory_string(path);
    merge->open_fd =
        files_open_quietly(merge->export->options->root, path[0] ? path : ".", O_DIRECTORY);
    return merge->open_fd < 0 ? error_from_errno(errno, "open the directory %s", path) : NULL;
}

static struct error *
read_entry(struct merge *merge, const char *directory, const char *name)
{
    const struct tree_entry *old = NULL;
    struct error *error = pass(merge, &merge->key, true);
    if (!error)
        error = peek(merge, &merge->key, &old);
    bool is_done = is_exported(merge, &merge->key);
    if (!error && !is_done)
        error = open_directory(merge, directory);
    if (!error && !is_done)
        error = tree_source_add(&merge->export->source, directory, merge->open_fd, name, old,
                                merge->trusted_s);
    return !error && old ? use_entry(&merge->base) : error;
}

/* ---- a directory that is listed again ---- */

/* Drops the entries of the directory below the key; NULL: all that are left. */
static struct error *
drop_entries(struct merge *merge, const char *directory, const struct buffer *until)
{
    struct base_cursor *base = &merge->base;
    struct error *error;
    while (!(error = find_entry(base)) && base->is_loaded) {
        const struct tree_entry *entry = &base->leaf.entry;
        bool is_here = !strcmp(base->leaf.directory, directory) && entry->kind != TREE_DIRECTORY;
        if (!is_here || (until && compare(&base->leaf.key, until) >= 0))
            return NULL;
        if (entry->kind == TREE_CHILD)
            error = put_subtree(merge, directory, entry->name, CHANGE_GONE);
        if (!error)
            error = use_entry(base);
        if (error)
            return error;
    }
    return error;
}

static struct error *
add_subdirectory(struct merge *merge, const char *directory, const struct tree_name *name,
                 const struct tree_entry *old)
{
    struct error *error = NULL;
    if (!old || old->kind != TREE_CHILD || old->inode != name->inode)
        error = put_subtree(merge, directory, name->name, CHANGE_NEW);
    return error || is_exported(merge, &merge->key)
               ? error
               : tree_source_add_child(&merge->export->source, directory, name);
}

static struct error *
add_entry(struct merge *merge, const char *directory, int fd, const struct tree_name *name,
          const struct tree_entry *old)
{
    uint8_t value;
    bool is_changed = false;
    struct error *error = NULL;
    if (old && old->kind == TREE_CHILD) {
        error = put_subtree(merge, directory, name->name, CHANGE_GONE);
        old = NULL;
    }
    if (error || is_exported(merge, &merge->key))
        return error;
    if (old && old->inode == name->inode)
        error = cache_db_get(merge->changes, merge->key.bytes, merge->key.size, &value,
                             sizeof value, &is_changed);
    if (error)
        return error;
    if (old && old->inode == name->inode && !is_changed)
        return tree_writer_add(merge->export->writer, directory, old);
    return tree_source_add(&merge->export->source, directory, fd, name->name, old,
                           merge->trusted_s);
}

static struct error *
merge_part(struct merge *merge, const char *directory, int fd, const struct tree_listing *listing)
{
    struct error *error = NULL;
    for (size_t i = 0; !error && i < listing->count; i++) {
        const struct tree_name *name = &listing->names[i];
        const struct tree_entry *old = NULL;
        tree_entry_key(&merge->key, directory, name->name);
        error = drop_entries(merge, directory, &merge->key);
        if (!error)
            error = peek(merge, &merge->key, &old);
        if (!error)
            error = name->is_directory ? add_subdirectory(merge, directory, name, old)
                                       : add_entry(merge, directory, fd, name, old);
        if (!error && old)
            error = use_entry(&merge->base);
        if (!error)
            error = tree_source_check(&merge->export->source);
        if (!error)
            error = tree_export_save(merge->export);
    }
    return error;
}

static struct error *
merge_listing(struct merge *merge, const char *directory, int fd, struct tree_listing *listing)
{
    struct error *error = NULL;
    while (!error && listing->count) {
        error = merge_part(merge, directory, fd, listing);
        if (!error)
            error = tree_listing_next(listing);
    }
    return error ? error : drop_entries(merge, directory, NULL);
}

static struct error *
list_again(struct merge *merge, const char *directory)
{
    struct tree_listing listing AUTO(tree_listing_clear) = {0};
    int fd AUTO(files_close) = -1;
    struct error *error = use_entry(&merge->base); /* the directory's own */
    if (!error)
        error = tree_source_list(&merge->export->source, directory, &fd, &listing);
    if (!error && !is_exported(merge, &merge->key)) /* still the directory's own */
        error = tree_source_add_directory(&merge->export->source, directory, fd);
    if (!error)
        error = merge_listing(merge, directory, fd, &listing);
    /* The block ends where the first subdirectory's begins. */
    tree_entry_key(&merge->done, directory, "");
    merge->done.bytes[merge->done.size - 1] = 1;
    return error;
}

/* ---- a whole directory ---- */

static struct error *
replace_subtree(struct merge *merge, const char *path, bool is_new)
{
    tree_entry_end_key(&merge->done, path);
    struct error *error = pass(merge, &merge->done, false);
    return !error && is_new ? tree_scan_walk(merge->export, path) : error;
}

static struct error *
change_directory(struct merge *merge, const char *path, enum change change)
{
    const struct tree_entry *old;
    struct error *error = pass(merge, &merge->key, true);
    if (!error)
        error = peek(merge, &merge->key, &old);
    if (error)
        return error;
    if (change == CHANGE_DIRECTORY && old)
        return list_again(merge, path);
    return replace_subtree(merge, path, change != CHANGE_GONE);
}

/* ---- all of it ---- */

static struct error *
apply(struct merge *merge, const struct cache_db_walk *walk)
{
    char directory[TREE_PATH_MAX + 1], name[TREE_NAME_MAX + 1];
    if (compare(&walk->key, &merge->done) < 0)
        return NULL;
    if (!tree_entry_read_key(walk->key.bytes, walk->key.size, directory, name) ||
        walk->value.size != 1)
        return error_new(CODE_INTERNAL, "the list of changes is damaged");
    merge->key.size = 0;
    buffer_append(&merge->key, walk->key.bytes, walk->key.size);
    if (walk->value.bytes[0] == CHANGE_ENTRY)
        return read_entry(merge, directory, name);
    return change_directory(merge, directory, (enum change)walk->value.bytes[0]);
}

static struct error *
apply_all(struct merge *merge)
{
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    struct error *error;
    while (!(error = cache_db_next(merge->changes, &walk)) && walk.found) {
        error = apply(merge, &walk);
        if (!error)
            error = tree_source_check(&merge->export->source);
        if (!error)
            error = tree_export_save(merge->export);
        if (error)
            return error;
    }
    return error ? error : pass(merge, NULL, true);
}

struct error *
tree_merge_run(struct tree_export *export)
{
    const struct tree_export_options *options = export->options;
    struct merge merge = {
        .export = export,
        .trusted_s = options->base->origin.taken_s - TRUST_S,
        .open_fd = -1,
    };
    struct error *error =
        cache_db_open_temporary(options->work_directory, CHANGES_KIB, &merge.changes);
    if (!error)
        error = btrfs_changes_find(options->root, options->base->origin.generation, take_change,
                                   &merge);
    if (!error)
        error = open_base(&merge.base, options->repository, &options->base->root);
    if (!error)
        error = apply_all(&merge);
    tree_leaves_close(&merge.base.leaves);
    tree_leaves_close(&merge.base.ahead);
    tree_leaf_close(&merge.base.leaf);
    cache_db_close(merge.changes);
    buffer_clear(&merge.done);
    buffer_clear(&merge.key);
    files_close(&merge.open_fd);
    free(merge.open_path);
    return error;
}
