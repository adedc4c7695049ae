/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator for what lives as long as a call: everything in it goes at once. What many small
 * things need is given back to the system then, however the heap may look.
 *
 * An arena has a limit. Everything that it gives out counts. A peer's message is decoded with
 * arena_try, which says NULL beyond the limit. Our own code uses arena_alloc and the rest, which
 * never give NULL: what it makes of a message must therefore grow no faster than the message. Not
 * thread safe: one owner at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* the newest first */
    uint8_t *next;              /* free bytes of the newest block, or of the caller's first block */
    uint8_t *end;
    size_t used; /* bytes given out */
    size_t limit;
    bool has_refused;      /* arena_try has said NULL */
    unsigned small_blocks; /* on the heap; further ones are mapped */
    uint8_t *first;        /* the caller's first block, may be NULL */
    size_t first_size;
};

/*
 * `first` (may be NULL) is a block of the caller's that is used before anything is taken from the
 * heap.
 */
void arena_init(struct arena *arena, void *first, size_t first_size, size_t limit);

/* Frees everything; the arena is as after arena_init. */
void arena_clear(struct arena *arena);

/*
 * What `from` has given out is `arena`'s from now on, and `from` is empty. `from` has no first
 * block of a caller's.
 */
void arena_absorb(struct arena *arena, struct arena *from);

/* NULL when the bytes given out this way would exceed the limit. */
void *arena_try(struct arena *arena, size_t size);

void *arena_alloc(struct arena *arena, size_t size);
void *arena_zeroed(struct arena *arena, size_t size);
char *arena_string(struct arena *arena, const char *text);
/* A NUL-terminated copy of `size` bytes. */
char *arena_copy(struct arena *arena, const void *bytes, size_t size);
char *arena_print(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
