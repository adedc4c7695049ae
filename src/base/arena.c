/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator over a chain of heap blocks: see arena.h. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/*
 * The heap is faster, but after a long list in thousands of small blocks some of them always stay
 * allocated.
 */
#define BLOCK_SIZE 4096u
#define MOST_SMALL 16
#define MAPPED_SIZE (256u << 10)
#define ALIGNMENT _Alignof(max_align_t)

struct arena_block {
    struct arena_block *older;
    size_t mapped; /* bytes of a mapped block; 0: it is on the heap */
    max_align_t bytes[];
};

static size_t
align_up(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void
arena_init(struct arena *arena, void *first, size_t first_size, size_t limit)
{
    *arena = (struct arena){.limit = limit, .first = first, .first_size = first_size};
    if (!first)
        return;
    size_t padding = align_up((uintptr_t)first) - (uintptr_t)first;
    arena->end = arena->first + first_size;
    arena->next = padding < first_size ? arena->first + padding : arena->end;
}

void
arena_clear(struct arena *arena)
{
    struct arena_block *block = arena->blocks;
    while (block) {
        struct arena_block *older = block->older;
        if (block->mapped)
            memory_unmap(block, block->mapped);
        else
            free(block);
        block = older;
    }
    arena_init(arena, arena->first, arena->first_size, arena->limit);
}

/* After the newest block, whose free bytes stay in use. */
void
arena_absorb(struct arena *arena, struct arena *from)
{
    struct arena_block *oldest = from->blocks;
    if (!oldest)
        return;
    while (oldest->older)
        oldest = oldest->older;
    if (arena->blocks) {
        oldest->older = arena->blocks->older;
        arena->blocks->older = from->blocks;
    } else {
        arena->blocks = from->blocks;
    }
    arena->used += from->used;
    arena_init(from, NULL, 0, from->limit);
}

/* Large requests get a block of their own after the newest, whose free bytes stay in use. */
static void *
alloc_own_block(struct arena *arena, size_t size)
{
    struct arena_block *block = memory_new(sizeof *block + size);
    block->mapped = 0;
    if (arena->blocks) {
        block->older = arena->blocks->older;
        arena->blocks->older = block;
    } else {
        block->older = NULL;
        arena->blocks = block;
    }
    return block->bytes;
}

static void *
alloc_from_new_block(struct arena *arena, size_t size)
{
    bool is_small = arena->small_blocks < MOST_SMALL;
    size_t block_size = is_small ? sizeof(struct arena_block) + BLOCK_SIZE : MAPPED_SIZE;
    struct arena_block *block = is_small ? memory_new(block_size) : memory_map(block_size);
    arena->small_blocks += is_small;
    block->mapped = is_small ? 0 : block_size;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->next = (uint8_t *)block->bytes + size;
    arena->end = (uint8_t *)block + block_size;
    return block->bytes;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        memory_exhausted();
    size = align_up(size ? size : 1);
    arena->used += size;
    if (size <= (size_t)(arena->end - arena->next)) {
        void *bytes = arena->next;
        arena->next += size;
        return bytes;
    }
    if (size > BLOCK_SIZE / 4)
        return alloc_own_block(arena, size);
    return alloc_from_new_block(arena, size);
}

void *
arena_try(struct arena *arena, size_t size)
{
    if (size > arena->limit || arena->used > arena->limit - size) {
        arena->has_refused = true;
        return NULL;
    }
    return arena_alloc(arena, size);
}

void *
arena_zeroed(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

char *
arena_copy(struct arena *arena, const void *bytes, size_t size)
{
    char *copy = arena_alloc(arena, size + 1);
    if (size)
        memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

char *
arena_string(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text));
}

char *
arena_print(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        memory_exhausted();
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
