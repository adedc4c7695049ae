/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap. Every size that a peer sends is bounded before it reaches these functions, so a failed
 * allocation means that the machine is out of memory: the process reports that and ends.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

#include "base/attributes.h"

NEVER_NULL void *memory_new(size_t size);
NEVER_NULL void *memory_zeroed(size_t size);
NEVER_NULL void *memory_resize(void *block, size_t size);
NEVER_NULL char *memory_string(const char *text);

/*
 * Separate, zeroed pages, which go back to the system when they are unmapped. `size` is the same
 * for both.
 */
NEVER_NULL void *memory_map(size_t size);
void memory_unmap(void *pages, size_t size);

__attribute__((noreturn)) void memory_exhausted(void);

/*
 * For the main function of a server: one heap for all threads, which does not shrink and grow with
 * every large message.
 */
void memory_tune(void);

/* For `char *text AUTO(memory_cleanup)`: frees what a pointer variable points to. */
void memory_cleanup(void *pointer_to_block);

#endif
