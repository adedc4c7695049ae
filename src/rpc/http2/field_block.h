/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of one header block, collected while nghttp2 decodes it and then validated together.
 * Loop thread only; internal to rpc/.
 *
 * Names and values are not copied. They are in nghttp2's reference-counted buffers, most of which
 * are HPACK table entries that all calls share. field_block_keep makes them outlive the block.
 */
#ifndef RPC_HTTP2_FIELD_BLOCK_H
#define RPC_HTTP2_FIELD_BLOCK_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* What HTTP/2 adds to the size of each field (RFC 9113, section 6.5.2). */
#define FIELD_OVERHEAD 32u

/* Upper bound for the memory of a field besides its text: two buffers and a metadata entry. */
#define FIELD_MEMORY 256u

/* Name and value are NUL-terminated. */
struct field {
    const char *name;
    size_t name_size;
    const char *value;
    size_t value_size;
    bool is_secret; /* never indexed: forwarding must keep it out of HPACK tables */
};

struct field_block {
    struct field *fields;
    size_t count;
    size_t bytes;     /* size by HTTP/2's rule, including fields that were not stored */
    size_t max_bytes; /* fields beyond this are counted but not stored */
    size_t capacity;
    size_t buffer_count; /* 0 after field_block_keep */
    nghttp2_rcbuf **buffers;
};

/* References to the buffers of a block, allocated in the arena of whoever keeps them. */
struct kept_fields {
    struct kept_fields *older;
    size_t count;
    nghttp2_rcbuf *buffers[];
};

void field_block_add(struct field_block *block, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
                     bool is_secret);

/*
 * Upper bound for the memory that keeping the fields takes. HPACK entries are shared, but a peer
 * can avoid indexing, so every field counts in full.
 */
static inline size_t
field_block_memory(const struct field_block *block)
{
    size_t bytes = block->bytes < block->max_bytes ? block->bytes : block->max_bytes;
    return bytes + block->count * FIELD_MEMORY;
}

/* Returns NULL if there is no field of that name. */
const struct field *field_block_find(const struct field_block *block, const char *name,
                                     size_t name_size);

/* Empties the block for reuse. */
void field_block_drop(struct field_block *block);
void field_block_clear(struct field_block *block);

/* Keeps the text of all fields alive until field_block_release. */
void field_block_keep(struct field_block *block, struct kept_fields **kept, struct arena *arena);
void field_block_release(struct kept_fields **kept);

#endif
