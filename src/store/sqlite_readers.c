/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections for reading: a few, so that a read waits neither for the disk to finish a commit nor
 * for a long read. They are opened on demand, and the most recently used one is used first.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/sqlite_internal.h"

#define CACHE_KIB 128

void
sqlite_readers_init(struct sqlite_readers *readers, const char *path, const char *const *statements)
{
    *readers = (struct sqlite_readers){.path = path, .statements = statements};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void
sqlite_readers_clear(struct sqlite_readers *readers)
{
    while (readers->free_count) {
        struct sqlite_connection *reader = readers->free[--readers->free_count];
        sqlite_connection_close(reader);
        free(reader);
    }
    pthread_cond_destroy(&readers->changed);
    pthread_mutex_destroy(&readers->lock);
}

static struct error *
open_reader(struct sqlite_readers *readers, struct sqlite_connection **out)
{
    struct sqlite_connection *reader = memory_new(sizeof *reader);
    struct error *error = sqlite_connection_open(reader, readers->path, CACHE_KIB);
    if (!error)
        error = sqlite_execute(reader, "PRAGMA query_only = ON");
    if (!error)
        error = sqlite_connection_prepare(reader, readers->statements);
    if (!error) {
        *out = reader;
        return NULL;
    }
    sqlite_connection_close(reader);
    free(reader);
    return error;
}

/* A free one; NULL: a new one may be opened, and has been counted. */
static struct sqlite_connection *
find_free(struct sqlite_readers *readers)
{
    struct sqlite_connection *reader = NULL;
    pthread_mutex_lock(&readers->lock);
    while (readers->is_paused || (!readers->free_count && readers->count == SQLITE_READERS))
        pthread_cond_wait(&readers->changed, &readers->lock);
    if (readers->free_count)
        reader = readers->free[--readers->free_count];
    else
        readers->count++;
    pthread_mutex_unlock(&readers->lock);
    return reader;
}

/* `reader` NULL: it could not be opened. */
void
sqlite_readers_give_back(struct sqlite_readers *readers, struct sqlite_connection *reader)
{
    pthread_mutex_lock(&readers->lock);
    if (reader)
        readers->free[readers->free_count++] = reader;
    else
        readers->count--;
    if (readers->is_paused)
        pthread_cond_broadcast(&readers->changed); /* sqlite_readers_pause may wait too */
    else
        pthread_cond_signal(&readers->changed);
    pthread_mutex_unlock(&readers->lock);
}

struct error *
sqlite_readers_take(struct sqlite_readers *readers, struct sqlite_connection **out)
{
    *out = find_free(readers);
    if (*out)
        return NULL;
    struct error *error = open_reader(readers, out);
    if (error)
        sqlite_readers_give_back(readers, NULL);
    return error;
}

bool
sqlite_readers_pause(struct sqlite_readers *readers, unsigned limit_ms)
{
    struct timespec until = clock_after_ms(limit_ms);
    bool is_over = false;
    pthread_mutex_lock(&readers->lock);
    readers->is_paused = true;
    while (readers->free_count < readers->count && !is_over)
        is_over = pthread_cond_timedwait(&readers->changed, &readers->lock, &until) == ETIMEDOUT;
    bool is_quiet = readers->free_count == readers->count;
    pthread_mutex_unlock(&readers->lock);
    return is_quiet;
}

void
sqlite_readers_resume(struct sqlite_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    readers->is_paused = false;
    pthread_cond_broadcast(&readers->changed);
    pthread_mutex_unlock(&readers->lock);
}
