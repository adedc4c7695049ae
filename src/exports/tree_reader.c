/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the manifest of a tree: see tree_manifest.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "exports/tree_manifest.h"

static struct error *
damaged(const char *what)
{
    return error_new(CODE_DATA_LOSS, "the manifest of the tree is damaged: %s", what);
}

/* The bytes behind the head of a chunk. */
static bool
begin_chunk(struct varint_reader *in, const void *bytes, size_t size, enum tree_level level)
{
    *in = (struct varint_reader){bytes, (const uint8_t *)bytes + size, false};
    const uint8_t *head = varint_get_bytes(in, 2);
    return head && head[0] == TREE_VERSION && head[1] == level;
}

static struct error *
load(struct repository *repository, const struct repository_id *id, enum tree_level level,
     uint8_t **bytes, struct varint_reader *in)
{
    size_t size = 0;
    if (!*bytes)
        *bytes = memory_map(REPOSITORY_CHUNK_MAX);
    struct error *error = repository_read(repository, id, *bytes, &size);
    if (error)
        return error;
    return begin_chunk(in, *bytes, size, level) ? NULL : damaged("a chunk is of another kind");
}

static void
unmap(uint8_t **chunk)
{
    if (*chunk)
        memory_unmap(*chunk, REPOSITORY_CHUNK_MAX);
    *chunk = NULL;
}

/* ---- leaves ---- */

static struct error *
next_in_index(struct varint_reader *in, uint64_t *left, const char **key, size_t *key_size,
              struct repository_id *id, struct tree_sum *sum)
{
    *key_size = (size_t)varint_get_up_to(in, TREE_INDEX_KEY_MAX);
    *key = (const char *)varint_get_bytes(in, *key_size);
    const uint8_t *bytes = varint_get_bytes(in, sizeof id->bytes);
    sum->entries = varint_get(in);
    sum->bytes = varint_get(in);
    if (in->is_bad)
        return damaged("an index ends too early");
    memcpy(id->bytes, bytes, sizeof id->bytes);
    --*left;
    return NULL;
}

static struct error *
next_node(struct tree_leaves *leaves)
{
    const char *key;
    size_t key_size;
    struct repository_id id = {0};
    struct tree_sum sum;
    struct error *error =
        next_in_index(&leaves->nodes, &leaves->nodes_left, &key, &key_size, &id, &sum);
    if (!error)
        error = load(leaves->repository, &id, TREE_LEVEL_NODE, &leaves->node, &leaves->leaves);
    leaves->node_id = id;
    if (!error)
        leaves->leaves_left = varint_get_up_to(&leaves->leaves, REPOSITORY_CHUNK_MAX);
    return error;
}

struct error *
tree_leaves_next(struct tree_leaves *leaves)
{
    struct error *error = NULL;
    while (!error && !leaves->leaves_left && leaves->nodes_left)
        error = next_node(leaves);
    leaves->has_leaf = !error && leaves->leaves_left;
    if (!leaves->has_leaf)
        return error;
    return next_in_index(&leaves->leaves, &leaves->leaves_left, &leaves->key, &leaves->key_size,
                         &leaves->id, &leaves->sum);
}

struct error *
tree_leaves_open(struct tree_leaves *leaves, struct repository *repository,
                 const struct repository_id *root)
{
    *leaves = (struct tree_leaves){.repository = repository};
    struct error *error = load(repository, root, TREE_LEVEL_ROOT, &leaves->root, &leaves->nodes);
    if (error)
        return error;
    leaves->nodes_left = varint_get_up_to(&leaves->nodes, REPOSITORY_CHUNK_MAX);
    return tree_leaves_next(leaves);
}

void
tree_leaves_close(struct tree_leaves *leaves)
{
    unmap(&leaves->root);
    unmap(&leaves->node);
}

/* ---- a leaf ---- */

/* The ids are copied, because they are not aligned. */
static bool
read_ids(struct varint_reader *in, struct repository_id **ids, size_t *count)
{
    *count = (size_t)varint_get_up_to(in, (size_t)(in->end - in->at) / sizeof **ids);
    const uint8_t *bytes = varint_get_bytes(in, *count * sizeof **ids);
    free(*ids);
    *ids = NULL;
    if (!bytes)
        return false;
    *ids = memory_new(*count * sizeof **ids + 1);
    memcpy(*ids, bytes, *count * sizeof **ids);
    return true;
}

static struct error *
begin_leaf(struct tree_leaf *leaf)
{
    size_t size;
    bool is_good = read_ids(&leaf->in, &leaf->ids, &leaf->id_count);
    const char *directory = varint_get_text(&leaf->in, TREE_PATH_MAX, &size);
    leaf->entries_left = varint_get_up_to(&leaf->in, REPOSITORY_CHUNK_MAX);
    leaf->has_entry = false;
    if (!is_good || leaf->in.is_bad || (size && !tree_entry_is_path(directory, size)))
        return damaged("the head of a leaf");
    memcpy(leaf->directory, directory, size + 1);
    leaf->key.size = 0;
    if (!leaf->parts)
        leaf->parts = memory_new(TREE_PARTS_MAX * sizeof *leaf->parts);
    return NULL;
}

struct error *
tree_leaf_load(struct tree_leaf *leaf, struct repository *repository,
               const struct repository_id *id)
{
    struct error *error = load(repository, id, TREE_LEVEL_LEAF, &leaf->bytes, &leaf->in);
    return error ? error : begin_leaf(leaf);
}

struct error *
tree_leaf_read(struct tree_leaf *leaf, const void *bytes, size_t size)
{
    if (!begin_chunk(&leaf->in, bytes, size, TREE_LEVEL_LEAF))
        return damaged("a chunk is of another kind");
    return begin_leaf(leaf);
}

static bool
check_key(struct tree_leaf *leaf)
{
    struct buffer key AUTO(buffer_clear) = {0};
    bool is_directory = leaf->entry.kind == TREE_DIRECTORY;
    if (is_directory)
        memcpy(leaf->directory, leaf->entry.name, leaf->entry.name_size + 1);
    tree_entry_key(&key, leaf->directory, is_directory ? "" : leaf->entry.name);
    bool is_behind = !leaf->key.size ||
                     tree_entry_compare(leaf->key.bytes, leaf->key.size, key.bytes, key.size) < 0;
    struct buffer old = leaf->key;
    leaf->key = key;
    key = old;
    return is_behind;
}

struct error *
tree_leaf_next(struct tree_leaf *leaf)
{
    leaf->has_entry = leaf->entries_left > 0;
    if (!leaf->has_entry)
        return leaf->in.at == leaf->in.end ? NULL : damaged("a leaf has a tail");
    leaf->entries_left--;
    if (!tree_entry_decode(&leaf->in, leaf->ids, leaf->id_count, leaf->parts, &leaf->entry))
        return damaged("an entry");
    return check_key(leaf) ? NULL : damaged("entries are not in order");
}

void
tree_leaf_close(struct tree_leaf *leaf)
{
    unmap(&leaf->bytes);
    free(leaf->ids);
    free(leaf->parts);
    buffer_clear(&leaf->key);
    *leaf = (struct tree_leaf){0};
}

/* ---- lists ---- */

struct error *
tree_list_load(struct repository *repository, const struct repository_id *id,
               struct tree_part *parts, size_t *count, uint64_t *size)
{
    uint8_t *bytes AUTO(unmap) = NULL;
    struct repository_id *ids AUTO(memory_cleanup) = NULL;
    size_t id_count;
    struct varint_reader in;
    struct error *error = load(repository, id, TREE_LEVEL_LIST, &bytes, &in);
    if (error)
        return error;
    bool is_good = read_ids(&in, &ids, &id_count) &&
                   tree_parts_decode(&in, ids, id_count, false, parts, count, size) &&
                   in.at == in.end;
    return is_good ? NULL : damaged("the parts of a file");
}

struct error *
tree_list_put(struct repository_writer *writer, const struct tree_part *parts, size_t count,
              struct repository_id *id)
{
    struct buffer chunk AUTO(buffer_clear) = {0}, encoded AUTO(buffer_clear) = {0};
    struct tree_ids ids AUTO(tree_ids_clear) = {0};
    tree_parts_encode(&encoded, &ids, parts, count);
    buffer_append_byte(&chunk, TREE_VERSION);
    buffer_append_byte(&chunk, TREE_LEVEL_LIST);
    varint_put(&chunk, ids.count);
    buffer_append(&chunk, ids.ids, ids.count * sizeof *ids.ids);
    buffer_append(&chunk, encoded.bytes, encoded.size);
    return repository_writer_put(writer, chunk.bytes, chunk.size, id);
}
