/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, with one policy for exhaustion: see memory.h. */
#include "base/memory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
memory_exhausted(void)
{
    static const char text[] = "skycap: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    abort();
}

void
memory_tune(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_TOP_PAD, 256 << 10);
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

void *
memory_new(size_t size)
{
    void *block = malloc(size ? size : 1);
    if (!block)
        memory_exhausted();
    return block;
}

void *
memory_zeroed(size_t size)
{
    void *block = calloc(1, size ? size : 1);
    if (!block)
        memory_exhausted();
    return block;
}

void *
memory_resize(void *block, size_t size)
{
    void *moved = realloc(block, size ? size : 1);
    if (!moved)
        memory_exhausted();
    return moved;
}

char *
memory_string(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        memory_exhausted();
    return copy;
}

void
memory_cleanup(void *pointer_to_block)
{
    void *block;
    memcpy(&block, pointer_to_block, sizeof block);
    free(block);
}
