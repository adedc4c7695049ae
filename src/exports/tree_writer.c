/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the manifest of a tree: see tree_manifest.h.
 *
 * The end of a leaf also ends the bundle, so that a leaf needs nothing of the one before it. The
 * size that decides about the end of a leaf is an estimate that does not depend on how ids are
 * numbered.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "exports/tree_manifest.h"

#define LEAF_LEAST (128u << 10)
#define LEAF_MOST (1u << 20)
#define LEAF_MASK 0x7ffu
#define ENTRY_WEIGHT 64u
#define PART_WEIGHT 40u
#define BYTES_WEIGHT 256u /* so that a leaf has not much more than 256 MiB in large files */
#define NODE_LEAST 16u
#define NODE_MOST 512u
#define NODE_MASK 0x3fu
#define BUNDLE_LEAST (512u << 10)
#define BUNDLE_MOST (1536u << 10)
#define BUNDLE_MASK 0xfu

/* A root or a node that is being made. */
struct index {
    enum tree_level level;
    struct buffer entries;
    size_t count;
    struct tree_sum sum;
    struct buffer first_key;
    bool is_cut; /* the next entry belongs to the next one */
};

struct tree_writer {
    struct repository_writer *chunks;
    struct tree_ids ids; /* of the leaf */
    struct buffer entries;
    size_t entry_count, weight;
    struct tree_sum sum;     /* of the leaf */
    struct buffer start;     /* the directory that the leaf begins in, encoded */
    struct buffer first_key; /* of the leaf */
    struct buffer key;       /* of the last entry */
    struct buffer bundle;
    bool has_bundle;
    struct buffer chunk; /* that is being put together */
    struct index nodes;  /* the root */
    struct index leaves; /* the current node */
};

struct tree_writer *
tree_writer_new(struct repository_writer *chunks)
{
    struct tree_writer *writer = memory_zeroed(sizeof *writer);
    writer->chunks = chunks;
    writer->nodes.level = TREE_LEVEL_ROOT;
    writer->leaves.level = TREE_LEVEL_NODE;
    return writer;
}

static void
clear_index(struct index *index)
{
    buffer_clear(&index->entries);
    buffer_clear(&index->first_key);
    *index = (struct index){.level = index->level};
}

void
tree_writer_free(struct tree_writer *writer)
{
    if (!writer)
        return;
    tree_ids_clear(&writer->ids);
    buffer_clear(&writer->entries);
    buffer_clear(&writer->start);
    buffer_clear(&writer->first_key);
    buffer_clear(&writer->key);
    buffer_clear(&writer->bundle);
    buffer_clear(&writer->chunk);
    clear_index(&writer->nodes);
    clear_index(&writer->leaves);
    free(writer);
}

static void
set_bytes(struct buffer *buffer, const void *bytes, size_t size)
{
    buffer->size = 0;
    buffer_append(buffer, bytes, size);
}

/* ---- roots and nodes ---- */

static void
begin_chunk(struct tree_writer *writer, enum tree_level level)
{
    writer->chunk.size = 0;
    buffer_append_byte(&writer->chunk, TREE_VERSION);
    buffer_append_byte(&writer->chunk, (uint8_t)level);
}

static struct error *
put_index(struct tree_writer *writer, const struct index *index, struct repository_id *id)
{
    begin_chunk(writer, index->level);
    varint_put(&writer->chunk, index->count);
    buffer_append(&writer->chunk, index->entries.bytes, index->entries.size);
    if (writer->chunk.size > REPOSITORY_CHUNK_MAX)
        return error_new(CODE_RESOURCE_EXHAUSTED, "the tree has too many entries for a manifest");
    return repository_writer_put(writer->chunks, writer->chunk.bytes, writer->chunk.size, id);
}

static void
add_to_index(struct index *index, const void *key, size_t size, const struct repository_id *id,
             const struct tree_sum *sum)
{
    if (!index->count)
        set_bytes(&index->first_key, key, size);
    varint_put(&index->entries, size);
    buffer_append(&index->entries, key, size);
    buffer_append(&index->entries, id->bytes, sizeof id->bytes);
    varint_put(&index->entries, sum->entries);
    varint_put(&index->entries, sum->bytes);
    index->sum.entries += sum->entries;
    index->sum.bytes += sum->bytes;
    index->count++;
    uint64_t hash = hash_bytes(key, size);
    index->is_cut =
        index->count >= NODE_MOST || (index->count >= NODE_LEAST && !(hash & NODE_MASK));
}

static struct error *
close_node(struct tree_writer *writer)
{
    struct repository_id id;
    struct index *node = &writer->leaves;
    struct error *error = node->count ? put_index(writer, node, &id) : NULL;
    if (error || !node->count)
        return error;
    add_to_index(&writer->nodes, node->first_key.bytes, node->first_key.size, &id, &node->sum);
    node->entries.size = 0;
    node->sum = (struct tree_sum){0};
    node->count = 0;
    node->is_cut = false;
    return NULL;
}

bool
tree_writer_is_between_leaves(const struct tree_writer *writer)
{
    return !writer->entry_count;
}

struct error *
tree_writer_add_leaf(struct tree_writer *writer, const void *key, size_t key_size,
                     const struct repository_id *id, const struct tree_sum *sum)
{
    struct error *error = writer->leaves.is_cut ? close_node(writer) : NULL;
    if (!error)
        add_to_index(&writer->leaves, key, key_size, id, sum);
    return error;
}

struct tree_sum
tree_writer_sum(const struct tree_writer *writer)
{
    const struct tree_sum *nodes = &writer->nodes.sum, *leaves = &writer->leaves.sum;
    return (struct tree_sum){nodes->entries + leaves->entries + writer->sum.entries,
                             nodes->bytes + leaves->bytes + writer->sum.bytes};
}

/* ---- bundles and leaves ---- */

static struct error *
close_bundle(struct tree_writer *writer)
{
    if (!writer->has_bundle)
        return NULL;
    writer->has_bundle = false;
    struct error *error =
        repository_writer_put(writer->chunks, writer->bundle.bytes, writer->bundle.size,
                              &writer->ids.ids[writer->ids.open]);
    writer->bundle.size = 0;
    return error;
}

static struct error *
close_leaf(struct tree_writer *writer)
{
    struct repository_id id;
    struct error *error = close_bundle(writer);
    if (error || !writer->entry_count)
        return error;
    begin_chunk(writer, TREE_LEVEL_LEAF);
    varint_put(&writer->chunk, writer->ids.count);
    buffer_append(&writer->chunk, writer->ids.ids, writer->ids.count * sizeof *writer->ids.ids);
    buffer_append(&writer->chunk, writer->start.bytes, writer->start.size);
    varint_put(&writer->chunk, writer->entry_count);
    buffer_append(&writer->chunk, writer->entries.bytes, writer->entries.size);
    error = repository_writer_put(writer->chunks, writer->chunk.bytes, writer->chunk.size, &id);
    if (!error)
        error = tree_writer_add_leaf(writer, writer->first_key.bytes, writer->first_key.size, &id,
                                     &writer->sum);
    writer->ids.count = 0;
    writer->entries.size = 0;
    writer->entry_count = writer->weight = 0;
    writer->sum = (struct tree_sum){0};
    return error;
}

static void
begin_leaf(struct tree_writer *writer, const char *directory)
{
    set_bytes(&writer->first_key, writer->key.bytes, writer->key.size);
    writer->start.size = 0;
    varint_put_text(&writer->start, directory, strlen(directory));
}

struct error *
tree_writer_add(struct tree_writer *writer, const char *directory, const struct tree_entry *entry)
{
    tree_entry_key(&writer->key, directory, entry->kind == TREE_DIRECTORY ? "" : entry->name);
    if (!writer->entry_count)
        begin_leaf(writer, directory);
    tree_entry_encode(&writer->entries, &writer->ids, entry);
    writer->entry_count++;
    writer->sum.entries += entry->kind != TREE_CHILD;
    writer->sum.bytes += entry->size;
    writer->weight += ENTRY_WEIGHT + entry->name_size + entry->attributes_size +
                      entry->target_size + PART_WEIGHT * entry->part_count;
    if (entry->size >= TREE_SMALL_FILE)
        writer->weight += (size_t)(entry->size / BYTES_WEIGHT);
    uint64_t hash = hash_bytes((const char *)writer->key.bytes, writer->key.size);
    bool is_end =
        writer->weight >= LEAF_MOST || (writer->weight >= LEAF_LEAST && !(hash >> 13 & LEAF_MASK));
    return is_end ? close_leaf(writer) : NULL;
}

/* The id is set when the bundle is put. */
static void
open_bundle(struct tree_writer *writer)
{
    writer->ids.open = tree_ids_reserve(&writer->ids);
    writer->has_bundle = true;
}

struct error *
tree_writer_add_small(struct tree_writer *writer, const char *directory,
                      const struct tree_entry *entry, const void *bytes)
{
    struct tree_entry whole = *entry;
    if (!entry->size)
        return tree_writer_add(writer, directory, entry);
    if (!writer->has_bundle)
        open_bundle(writer);
    struct tree_part part = {.kind = TREE_OPEN, .size = entry->size, .offset = writer->bundle.size};
    whole.parts = &part;
    whole.part_count = 1;
    buffer_append(&writer->bundle, bytes, (size_t)entry->size);
    struct error *error = tree_writer_add(writer, directory, &whole);
    uint64_t hash = hash_bytes(entry->name, entry->name_size) + entry->size;
    bool is_end = writer->bundle.size >= BUNDLE_MOST ||
                  (writer->bundle.size >= BUNDLE_LEAST && !(hash >> 7 & BUNDLE_MASK));
    return !error && is_end ? close_bundle(writer) : error;
}

/* ---- the end, and before it ---- */

struct error *
tree_writer_finish(struct tree_writer *writer, struct repository_id *root)
{
    struct error *error = close_leaf(writer);
    if (!error)
        error = close_node(writer);
    return error ? error : put_index(writer, &writer->nodes, root);
}

/* The current node is put as it is, and stays the current one. */
struct error *
tree_writer_save(struct tree_writer *writer, struct repository_id *root)
{
    struct index nodes = {.level = TREE_LEVEL_ROOT, .count = writer->nodes.count};
    struct repository_id id;
    struct error *error = NULL;
    buffer_append(&nodes.entries, writer->nodes.entries.bytes, writer->nodes.entries.size);
    if (writer->leaves.count) {
        error = put_index(writer, &writer->leaves, &id);
        if (!error)
            add_to_index(&nodes, writer->leaves.first_key.bytes, writer->leaves.first_key.size, &id,
                         &writer->leaves.sum);
    }
    if (!error)
        error = put_index(writer, &nodes, root);
    clear_index(&nodes);
    return error;
}

static struct error *
reuse_chunk(const struct tree_writer *writer, const struct repository_id *id, bool *is_there)
{
    return *is_there ? repository_writer_reuse(writer->chunks, id, is_there) : NULL;
}

static struct error *
reuse_list(const struct tree_writer *writer, struct repository *repository,
           const struct repository_id *list, bool *is_there)
{
    size_t count = 0;
    uint64_t size;
    struct tree_part *parts AUTO(memory_cleanup) = memory_new(TREE_PARTS_MAX * sizeof *parts);
    struct error *error = tree_list_load(repository, list, parts, &count, &size);
    for (size_t i = 0; !error && i < count; i++)
        if (parts[i].kind == TREE_DATA)
            error = reuse_chunk(writer, &parts[i].id, is_there);
    return error;
}

/* Everything that the leaf refers to. Its last key stays in `leaf->key`. */
static struct error *
reuse_leaf(const struct tree_writer *writer, struct repository *repository,
           const struct repository_id *id, struct tree_leaf *leaf, bool *is_there)
{
    struct error *error = reuse_chunk(writer, id, is_there);
    if (!error && *is_there)
        error = tree_leaf_load(leaf, repository, id);
    for (size_t i = 0; !error && *is_there && i < leaf->id_count; i++)
        error = reuse_chunk(writer, &leaf->ids[i], is_there);
    if (!error && *is_there)
        error = tree_leaf_next(leaf);
    while (!error && *is_there && leaf->has_entry) {
        for (size_t i = 0; !error && i < leaf->entry.part_count; i++)
            if (leaf->entry.parts[i].kind == TREE_LIST)
                error = reuse_list(writer, repository, &leaf->entry.parts[i].id, is_there);
        if (!error)
            error = tree_leaf_next(leaf);
    }
    return error;
}

static struct error *
resume_leaves(struct tree_writer *writer, struct tree_leaves *leaves, struct buffer *last_key,
              bool *is_there)
{
    struct tree_leaf leaf AUTO(tree_leaf_close) = {0};
    struct error *error = NULL;
    while (!error && *is_there && leaves->has_leaf) {
        error = reuse_leaf(writer, leaves->repository, &leaves->id, &leaf, is_there);
        if (!error && *is_there)
            error = tree_writer_add_leaf(writer, leaves->key, leaves->key_size, &leaves->id,
                                         &leaves->sum);
        if (!error && *is_there)
            error = tree_leaves_next(leaves);
    }
    set_bytes(last_key, leaf.key.bytes, leaf.key.size);
    return error;
}

struct error *
tree_writer_resume(struct tree_writer *writer, struct repository *repository,
                   const struct repository_id *root, struct buffer *last_key, bool *is_there)
{
    struct tree_leaves leaves AUTO(tree_leaves_close) = {0};
    *is_there = true;
    struct error *error = reuse_chunk(writer, root, is_there);
    if (!error && *is_there)
        error = tree_leaves_open(&leaves, repository, root);
    if (!error && *is_there)
        error = resume_leaves(writer, &leaves, last_key, is_there);
    if (error && error->code == CODE_NOT_FOUND) {
        *is_there = false;
        error = error_forgive(error, CODE_NOT_FOUND);
    }
    if (!*is_there) {
        clear_index(&writer->nodes);
        clear_index(&writer->leaves);
    }
    return error;
}
