/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, with one policy for running out of memory: see memory.h. */
#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

void *
memory_map(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        memory_exhausted();
    return pages;
}

void
memory_unmap(void *pages, size_t size)
{
    munmap(pages, size);
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
