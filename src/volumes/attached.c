/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volumes are attached to this node: see attached.h. The first request with a limit reads all
 * rows, once; without a limit nothing is read.
 */
#include "volumes/attached.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "volumes/rows.h"

/* How many rows are read at a time. */
#define PAGE 256

void
attached_init(struct attached *attached)
{
    *attached = (struct attached){0};
    pthread_mutex_init(&attached->lock, NULL);
}

void
attached_clear(struct attached *attached)
{
    tdestroy(attached->handles, free);
    pthread_mutex_destroy(&attached->lock);
}

/* ---- with the lock held ---- */

static int
compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool
is_in(const struct attached *attached, const char *handle)
{
    return tfind(handle, &attached->handles, compare);
}

static void
put_in(struct attached *attached, const char *handle)
{
    if (is_in(attached, handle))
        return;
    if (!tsearch(memory_string(handle), &attached->handles, compare))
        memory_exhausted();
    attached->count++;
}

static void
take_out(struct attached *attached, const char *handle)
{
    char **found = tfind(handle, &attached->handles, compare);
    if (!found)
        return;
    char *own = *found;
    tdelete(handle, &attached->handles, compare);
    free(own);
    attached->count--;
}

static struct error *
read_rows(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char after[BACKEND_HANDLE_SIZE] = "";
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    while (!error && page.has_more) {
        error = rows_list(engine, &volume_rows, after, PAGE, &arena, &page);
        for (size_t i = 0; i < page.count && !error; i++) {
            const volume_record *volume = (const volume_record *)page.rows[i].record;
            if (volume->n_attachments)
                put_in(&engine->attached, volume->handle);
            snprintf(after, sizeof after, "%s", volume->handle);
        }
        arena_clear(&arena);
    }
    engine->attached.is_known = !error;
    return error;
}

static struct error *
add(struct engine *engine, const char *handle, uint64_t limit)
{
    struct attached *attached = &engine->attached;
    struct error *error = limit && !attached->is_known ? read_rows(engine) : NULL;
    if (error || !attached->is_known)
        return error;
    if (limit && attached->count >= limit && !is_in(attached, handle))
        return error_new(CODE_RESOURCE_EXHAUSTED, "the node has reached its limit of %ju volumes",
                         (uintmax_t)limit);
    put_in(attached, handle);
    return NULL;
}

/* ---- */

struct error *
attached_add(struct engine *engine, const char *handle, uint64_t limit)
{
    pthread_mutex_lock(&engine->attached.lock);
    struct error *error = add(engine, handle, limit);
    pthread_mutex_unlock(&engine->attached.lock);
    return error;
}

void
attached_remove(struct engine *engine, const char *handle)
{
    pthread_mutex_lock(&engine->attached.lock);
    take_out(&engine->attached, handle);
    pthread_mutex_unlock(&engine->attached.lock);
}
