/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of images: see image_manifest.h. */
#include "exports/image_manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ROOT_IDS (REPOSITORY_CHUNK_MAX / REPOSITORY_ID_BYTES)
#define NODE_BYTES (IMAGE_NODE_IDS * sizeof(struct repository_id))

bool
image_id_is_zero(const struct repository_id *id)
{
    static const struct repository_id zero;
    return !memcmp(id, &zero, sizeof zero);
}

/* ---- writing ---- */

void
image_writer_init(struct image_writer *writer, struct repository_writer *chunks)
{
    *writer = (struct image_writer){.chunks = chunks,
                                    .root = memory_map(REPOSITORY_CHUNK_MAX),
                                    .node = memory_zeroed(NODE_BYTES)};
}

void
image_writer_clear(struct image_writer *writer)
{
    if (writer->root)
        memory_unmap(writer->root, REPOSITORY_CHUNK_MAX);
    free(writer->node);
    *writer = (struct image_writer){0};
}

static struct error *
put_node(struct image_writer *writer, struct repository_id *id)
{
    bool is_zero = true;
    for (size_t i = 0; i < writer->node_count && is_zero; i++)
        is_zero = image_id_is_zero(&writer->node[i]);
    *id = (struct repository_id){0};
    return is_zero ? NULL
                   : repository_writer_put(writer->chunks, writer->node,
                                           writer->node_count * sizeof *writer->node, id);
}

struct error *
image_writer_add(struct image_writer *writer, const struct repository_id *id)
{
    struct error *error = NULL;
    writer->node[writer->node_count++] = *id;
    if (writer->node_count < IMAGE_NODE_IDS)
        return NULL;
    if (writer->root_count == ROOT_IDS)
        return error_new(CODE_OUT_OF_RANGE, "the image is too large for a manifest");
    error = put_node(writer, &writer->root[writer->root_count++]);
    writer->node_count = 0;
    return error;
}

struct error *
image_writer_save(struct image_writer *writer, struct repository_id *root)
{
    size_t count = writer->root_count;
    if (writer->node_count) {
        if (count == ROOT_IDS)
            return error_new(CODE_OUT_OF_RANGE, "the image is too large for a manifest");
        struct error *error = put_node(writer, &writer->root[count++]);
        if (error)
            return error;
    }
    return repository_writer_put(writer->chunks, writer->root, count * sizeof *writer->root, root);
}

static struct error *
resume(struct image_writer *writer, struct repository *repository, const struct repository_id *root,
       uint64_t count, bool *is_there)
{
    struct image_reader reader AUTO(image_reader_close) = {0};
    struct error *error = repository_writer_reuse(writer->chunks, root, is_there);
    if (!error && *is_there)
        error = image_reader_open(&reader, repository, root, count * IMAGE_CHUNK);
    for (uint64_t i = 0; !error && *is_there && i < count; i++) {
        struct repository_id id;
        error = image_reader_get(&reader, i, &id);
        if (!error && !image_id_is_zero(&id))
            error = repository_writer_reuse(writer->chunks, &id, is_there);
        if (!error && *is_there)
            error = image_writer_add(writer, &id);
    }
    return error;
}

struct error *
image_writer_resume(struct image_writer *writer, struct repository *repository,
                    const struct repository_id *root, uint64_t count, bool *is_there)
{
    *is_there = true;
    struct error *error = resume(writer, repository, root, count, is_there);
    if (error && error->code == CODE_NOT_FOUND) {
        error = error_forgive(error, CODE_NOT_FOUND);
        *is_there = false;
    }
    if (!*is_there)
        writer->root_count = writer->node_count = 0;
    return error;
}

/* ---- reading ---- */

static struct error *
load(struct repository *repository, const struct repository_id *id, struct repository_id *out,
     uint64_t count)
{
    size_t size = 0;
    struct error *error = repository_read(repository, id, out, &size);
    if (!error && size != count * sizeof *out)
        error = error_new(CODE_DATA_LOSS, "the manifest of the image is damaged");
    return error;
}

struct error *
image_reader_open(struct image_reader *reader, struct repository *repository,
                  const struct repository_id *root, uint64_t size)
{
    uint64_t count = image_chunk_count(size);
    uint64_t nodes = count / IMAGE_NODE_IDS + (count % IMAGE_NODE_IDS != 0);
    *reader =
        (struct image_reader){.repository = repository, .count = count, .node_number = UINT64_MAX};
    if (nodes > ROOT_IDS)
        return error_new(CODE_DATA_LOSS, "the image is too large for its manifest");
    reader->root = memory_map(REPOSITORY_CHUNK_MAX);
    reader->node = memory_map(REPOSITORY_CHUNK_MAX);
    return load(repository, root, reader->root, nodes);
}

static struct error *
load_node(struct image_reader *reader, uint64_t number)
{
    uint64_t left = reader->count - number * IMAGE_NODE_IDS;
    uint64_t count = left < IMAGE_NODE_IDS ? left : IMAGE_NODE_IDS;
    struct error *error = NULL;
    if (image_id_is_zero(&reader->root[number]))
        memset(reader->node, 0, NODE_BYTES);
    else
        error = load(reader->repository, &reader->root[number], reader->node, count);
    reader->node_number = error ? UINT64_MAX : number;
    return error;
}

struct error *
image_reader_get(struct image_reader *reader, uint64_t index, struct repository_id *id)
{
    uint64_t number = index / IMAGE_NODE_IDS;
    if (index >= reader->count)
        return error_new(CODE_OUT_OF_RANGE, "a chunk behind the end of the image");
    struct error *error = number == reader->node_number ? NULL : load_node(reader, number);
    if (!error)
        *id = reader->node[index % IMAGE_NODE_IDS];
    return error;
}

void
image_reader_close(struct image_reader *reader)
{
    if (reader->root)
        memory_unmap(reader->root, REPOSITORY_CHUNK_MAX);
    if (reader->node)
        memory_unmap(reader->node, REPOSITORY_CHUNK_MAX);
    *reader = (struct image_reader){0};
}
