/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index object names packs and what is in them. In clear it is a row of packs, each:
 *
 *     name (32), salt (32), size (4), number of entries (4), the entries as in the pack's list
 */
#ifndef REPOSITORY_INDEX_OBJECT_H
#define REPOSITORY_INDEX_OBJECT_H

#include "repository/pack.h"

#define INDEX_PACK_BYTES 72u
/* An index is closed when it names so many packs or chunks. */
#define INDEX_PACKS 32u
#define INDEX_ENTRIES 32768u

struct index_pack {
    struct object_name name;
    uint8_t salt[32];
    uint32_t size;
    uint32_t count;
    const uint8_t *entries; /* PACK_ENTRY_BYTES each; all have been checked */
};

void index_append(struct buffer *out, const struct index_pack *pack);

/* Reads the pack at `*at` and moves on. DATA_LOSS: it cannot be; at the end, `*found` is false. */
MUST_CHECK struct error *index_next(const struct buffer *index, size_t *at, struct index_pack *out,
                                    bool *found);

/* An entry of the pack; `i` is less than `count`. */
struct pack_entry index_entry(const struct index_pack *pack, uint32_t i);

#endif
