/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header fields of one block, collected while nghttp2 reads it and then judged together. Loop thread only; internal to rpc/.
 *
 * Names and values are not copied: they stand in buffers of nghttp2's that count who uses them, most of them entries of HPACK's
 * table, the same ones for every call. Who needs them longer than the block keeps them.
 */
#ifndef RPC_HTTP2_FIELD_BLOCK_H
#define RPC_HTTP2_FIELD_BLOCK_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* What HTTP/2 counts for a field beside its name and value. */
#define FIELD_OVERHEAD 32u

/* What a field takes in memory beside them, at most: the buffers of name and value, and its entry in the metadata. */
#define FIELD_MEMORY 256u

/* Name and value end in NUL. */
struct field {
    const char *name;
    size_t name_size;
    const char *value;
    size_t value_size;
    bool is_secret; /* whoever passes it on must keep it out of HPACK's tables, too */
};

struct field_block {
    struct field *fields;
    size_t count;
    size_t bytes;     /* as HTTP/2 counts them, also of fields that were not collected */
    size_t max_bytes; /* what comes beyond is counted alone */
    size_t capacity;
    size_t texts_count; /* 0: they have been kept by somebody */
    nghttp2_rcbuf **texts;
};

/* Texts that somebody keeps; in an arena of his. */
struct kept_fields {
    struct kept_fields *older;
    size_t count;
    nghttp2_rcbuf *texts[];
};

void field_block_add(struct field_block *block, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
                     bool is_secret);

/* What it takes to keep them, at most; texts that HPACK's table has are shared, but a peer need not let them be. */
static inline size_t
field_block_memory(const struct field_block *block)
{
    size_t bytes = block->bytes < block->max_bytes ? block->bytes : block->max_bytes;
    return bytes + block->count * FIELD_MEMORY;
}

/* NULL: there is none of that name. */
const struct field *field_block_find(const struct field_block *block, const char *name,
                                     size_t name_size);

/* Makes it empty, for the next block. */
void field_block_drop(struct field_block *block);
void field_block_clear(struct field_block *block);

/* The texts of all fields live until field_block_release. */
void field_block_keep(struct field_block *block, struct kept_fields **kept, struct arena *arena);
void field_block_release(struct kept_fields **kept);

#endif
