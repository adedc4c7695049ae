/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, with one policy for exhaustion: see memory.h. */
#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
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

/* A debugger's breakpoints stand in pages of the program, and would be lost. */
static bool
is_debugged(void)
{
    char line[64];
    int tracer = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        /* The kernel's own text. NOLINTNEXTLINE(cert-err34-c) */
        if (sscanf(line, "TracerPid: %d", &tracer) == 1)
            break;
    if (status)
        fclose(status);
    return tracer != 0;
}

/* The program itself comes first, and is all that is looked at. */
static int
drop_read_only_segments(struct dl_phdr_info *object, size_t size, void *argument)
{
    (void)size;
    (void)argument;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            /* What the loader tells are numbers. NOLINTNEXTLINE(performance-no-int-to-ptr) */
            madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    return 1;
}

void
memory_drop_start(void)
{
    malloc_trim(0);
    if (!is_debugged())
        dl_iterate_phdr(drop_read_only_segments, NULL);
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
