/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of an image: the ids of its chunks of 1 MiB, in two levels.
 *
 *     root     the ids of the nodes
 *     node     IMAGE_NODE_IDS ids of chunks, fewer in the last node
 *
 * Both are nothing but ids. An id of zeros stands for zeros: a chunk, or a node of such chunks. The
 * last chunk is filled up with zeros. The size of the image is in the snapshot's record.
 */
#ifndef EXPORTS_IMAGE_MANIFEST_H
#define EXPORTS_IMAGE_MANIFEST_H

#include <stdbool.h>

#include "repository/repository.h"

#define IMAGE_CHUNK (1u << 20)
#define IMAGE_NODE_IDS 8192u

static inline uint64_t
image_chunk_count(uint64_t size)
{
    return size / IMAGE_CHUNK + (size % IMAGE_CHUNK != 0);
}

bool image_id_is_zero(const struct repository_id *id);

/* ---- writing ---- */

struct image_writer {
    struct repository_writer *chunks;
    struct repository_id *root, *node;
    size_t root_count, node_count;
};

void image_writer_init(struct image_writer *writer, struct repository_writer *chunks);
void image_writer_clear(struct image_writer *writer);

MUST_CHECK struct error *image_writer_add(struct image_writer *writer,
                                          const struct repository_id *id);
/* The manifest so far; more may be added. */
MUST_CHECK struct error *image_writer_save(struct image_writer *writer, struct repository_id *root);

/*
 * Continues what was saved after `count` chunks. `*is_there` is false if the repository has not
 * kept all of it; then the writer is empty.
 */
MUST_CHECK struct error *image_writer_resume(struct image_writer *writer,
                                             struct repository *repository,
                                             const struct repository_id *root, uint64_t count,
                                             bool *is_there);

/* ---- reading ---- */

struct image_reader {
    struct repository *repository;
    uint64_t count; /* of chunks */
    struct repository_id *root, *node;
    uint64_t node_number; /* that is loaded; UINT64_MAX: none */
};

/* DATA_LOSS if the manifest does not fit to an image of this size. */
MUST_CHECK struct error *image_reader_open(struct image_reader *reader,
                                           struct repository *repository,
                                           const struct repository_id *root, uint64_t size);
/* The id of a chunk of the image; cheap in ascending order. */
MUST_CHECK struct error *image_reader_get(struct image_reader *reader, uint64_t index,
                                          struct repository_id *id);
void image_reader_close(struct image_reader *reader);

#endif
