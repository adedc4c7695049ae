/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator for everything that lives as long as a call; all of it is freed at once. The
 * memory of many small allocations goes back to the system, even if the heap is fragmented.
 *
 * An arena has a limit, and every allocation counts. A peer's message is decoded with arena_try,
 * which returns NULL beyond the limit. Our own code uses arena_alloc and the rest, which never
 * return NULL: what it derives from a message must therefore not grow faster than the message. Not
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
    struct arena_block *blocks; /* newest first */
    uint8_t *next;              /* free bytes of the newest block, or of the caller's */
    uint8_t *end;
    size_t used; /* bytes allocated */
    size_t limit;
    bool has_refused;      /* arena_try has returned NULL */
    unsigned small_blocks; /* on the heap; further ones are mapped */
    uint8_t *first;        /* the caller's block; may be NULL */
    size_t first_size;
};

/* `first` (may be NULL) is a block of the caller's that is used before the heap. */
void arena_init(struct arena *arena, void *first, size_t first_size, size_t limit);

/* Frees everything; the arena is as after arena_init. */
void arena_clear(struct arena *arena);

/*
 * Moves everything allocated in `from` to `arena`; `from` is empty then. `from` must not have a
 * block of a caller's.
 */
void arena_absorb(struct arena *arena, struct arena *from);

/* NULL if the limit would be exceeded. */
void *arena_try(struct arena *arena, size_t size);

void *arena_alloc(struct arena *arena, size_t size);
void *arena_zeroed(struct arena *arena, size_t size);
char *arena_string(struct arena *arena, const char *text);
/* A NUL-terminated copy of `size` bytes. */
char *arena_copy(struct arena *arena, const void *bytes, size_t size);
char *arena_print(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
