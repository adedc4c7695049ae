/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of one header block: see field_block.h. */
#include "rpc/http2/field_block.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define INITIAL_CAPACITY 16u

/* Larger arrays are freed after the block rather than kept for reuse. */
#define MAX_KEPT_CAPACITY 64u

static void
make_room(struct field_block *block)
{
    block->capacity = block->capacity ? block->capacity * 2 : INITIAL_CAPACITY;
    block->fields = memory_resize(block->fields, block->capacity * sizeof *block->fields);
    block->buffers = memory_resize(block->buffers, 2 * block->capacity * sizeof *block->buffers);
}

void
field_block_add(struct field_block *block, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
                bool is_secret)
{
    nghttp2_vec name_text = nghttp2_rcbuf_get_buf(name);
    nghttp2_vec value_text = nghttp2_rcbuf_get_buf(value);
    block->bytes += name_text.len + value_text.len + FIELD_OVERHEAD;
    if (block->bytes > block->max_bytes)
        return;
    if (block->count == block->capacity)
        make_room(block);
    block->fields[block->count++] =
        (struct field){(const char *)name_text.base, name_text.len, (const char *)value_text.base,
                       value_text.len, is_secret};
    nghttp2_rcbuf_incref(name);
    nghttp2_rcbuf_incref(value);
    nghttp2_rcbuf **buffers = block->buffers + block->buffer_count;
    buffers[0] = name;
    buffers[1] = value;
    block->buffer_count += 2;
}

const struct field *
field_block_find(const struct field_block *block, const char *name, size_t name_size)
{
    for (size_t i = 0; i < block->count; i++)
        if (block->fields[i].name_size == name_size &&
            memcmp(block->fields[i].name, name, name_size) == 0)
            return &block->fields[i];
    return NULL;
}

static void
release(nghttp2_rcbuf **buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nghttp2_rcbuf_decref(buffers[i]);
}

void
field_block_drop(struct field_block *block)
{
    release(block->buffers, block->buffer_count);
    block->count = block->buffer_count = block->bytes = 0;
    if (block->capacity > MAX_KEPT_CAPACITY)
        field_block_clear(block);
}

void
field_block_clear(struct field_block *block)
{
    release(block->buffers, block->buffer_count);
    free(block->fields);
    free(block->buffers);
    *block = (struct field_block){.max_bytes = block->max_bytes};
}

void
field_block_keep(struct field_block *block, struct kept_fields **kept, struct arena *arena)
{
    if (!block->buffer_count)
        return;
    size_t size = block->buffer_count * sizeof *block->buffers;
    struct kept_fields *newest = arena_alloc(arena, sizeof *newest + size);
    newest->older = *kept;
    newest->count = block->buffer_count;
    memcpy(newest->buffers, block->buffers, size);
    block->buffer_count = 0;
    *kept = newest;
}

void
field_block_release(struct kept_fields **kept)
{
    for (; *kept; *kept = (*kept)->older)
        release((*kept)->buffers, (*kept)->count);
}
