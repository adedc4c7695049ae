/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks that the record of an export refers to: see export_record.h. */
#include <string.h>

#include "base/memory.h"
#include "exports/export_record.h"
#include "exports/image_manifest.h"
#include "exports/tree_manifest.h"
#include "message/message_bytes.h"

struct listing {
    struct repository *repository;
    const struct repository_visitor *visitor;
    struct tree_part *parts;
};

static struct error *
tell(const struct listing *listing, const struct repository_id *id)
{
    return listing->visitor->take(id, listing->visitor->context);
}

/* Parts that snapshots share: whether all that this one refers to was told before. */
static struct error *
is_told(const struct listing *listing, const struct repository_id *part, bool *is)
{
    const struct repository_visitor *visitor = listing->visitor;
    *is = false;
    return visitor->knows ? visitor->knows(part, is, visitor->context) : NULL;
}

static struct error *
note_told(const struct listing *listing, const struct repository_id *part)
{
    const struct repository_visitor *visitor = listing->visitor;
    return visitor->note ? visitor->note(part, visitor->context) : NULL;
}

/* ---- images ---- */

static struct error *
list_node(const struct listing *listing, struct image_reader *reader, uint64_t number)
{
    const struct repository_id *node = &reader->root[number];
    uint64_t first = number * IMAGE_NODE_IDS;
    bool is_known = false;
    if (image_id_is_zero(node))
        return NULL;
    struct error *error = tell(listing, node);
    if (!error)
        error = is_told(listing, node, &is_known);
    if (error || is_known)
        return error;
    for (uint64_t i = first; !error && i < reader->count && i < first + IMAGE_NODE_IDS; i++) {
        struct repository_id id;
        error = image_reader_get(reader, i, &id);
        if (!error && !image_id_is_zero(&id))
            error = tell(listing, &id);
    }
    return error ? error : note_told(listing, node);
}

static struct error *
list_image(const struct listing *listing, const struct repository_id *root, uint64_t size)
{
    struct image_reader reader AUTO(image_reader_close) = {0};
    struct error *error = image_reader_open(&reader, listing->repository, root, size);
    for (uint64_t number = 0; !error && number * IMAGE_NODE_IDS < reader.count; number++)
        error = list_node(listing, &reader, number);
    return error;
}

/* ---- trees ---- */

static struct error *
list_list(const struct listing *listing, const struct repository_id *list)
{
    size_t count = 0;
    uint64_t size;
    struct error *error = tree_list_load(listing->repository, list, listing->parts, &count, &size);
    for (size_t i = 0; !error && i < count; i++)
        if (listing->parts[i].kind == TREE_DATA)
            error = tell(listing, &listing->parts[i].id);
    return error;
}

static struct error *
read_leaf(const struct listing *listing, struct tree_leaf *leaf, const struct repository_id *id)
{
    struct error *error = tree_leaf_load(leaf, listing->repository, id);
    for (size_t i = 0; !error && i < leaf->id_count; i++)
        error = tell(listing, &leaf->ids[i]);
    while (!error && !(error = tree_leaf_next(leaf)) && leaf->has_entry)
        for (size_t i = 0; !error && i < leaf->entry.part_count; i++)
            if (leaf->entry.parts[i].kind == TREE_LIST)
                error = list_list(listing, &leaf->entry.parts[i].id);
    return error;
}

static struct error *
list_leaf(const struct listing *listing, struct tree_leaf *leaf, const struct repository_id *id)
{
    bool is_known = false;
    struct error *error = tell(listing, id);
    if (!error)
        error = is_told(listing, id, &is_known);
    if (error || is_known)
        return error;
    error = read_leaf(listing, leaf, id);
    return error ? error : note_told(listing, id);
}

static struct error *
list_tree(const struct listing *listing, const struct repository_id *root)
{
    struct tree_leaves leaves AUTO(tree_leaves_close) = {0};
    struct tree_leaf leaf AUTO(tree_leaf_close) = {0};
    struct repository_id node = {0};
    struct error *error = tree_leaves_open(&leaves, listing->repository, root);
    while (!error && leaves.has_leaf) {
        if (memcmp(&node, &leaves.node_id, sizeof node) != 0)
            error = tell(listing, &leaves.node_id);
        node = leaves.node_id;
        if (!error)
            error = list_leaf(listing, &leaf, &leaves.id);
        if (!error)
            error = tree_leaves_next(&leaves);
    }
    return error;
}

/* ---- both ---- */

static struct error *
list(struct repository *repository, const void *bytes, size_t size,
     const struct repository_visitor *visitor, void *context)
{
    (void)context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct tree_part *parts AUTO(memory_cleanup) = memory_new(TREE_PARTS_MAX * sizeof *parts);
    struct listing listing = {repository, visitor, parts};
    const export_record *record = (const export_record *)message_bytes_unpack(
        &skycap__exports__export_record__descriptor, bytes, size, &arena);
    if (!record || record->manifest.len != REPOSITORY_ID_BYTES || record->size_bytes < 0)
        return error_new(CODE_DATA_LOSS, "the record of a snapshot is not one of an export");
    struct repository_id root = export_record_manifest(record);
    struct error *error = tell(&listing, &root);
    if (error)
        return error;
    return record->kind == EXPORT_KIND(IMAGE)
               ? list_image(&listing, &root, (uint64_t)record->size_bytes)
               : list_tree(&listing, &root);
}

const struct repository_references export_references = {list, NULL};
