/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that copies read themselves: see copied_sources.h. A list will do: there are few. */
#include "connections/copy/copied_sources.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "connections/request/global_id.h"

struct copied_source {
    struct copied_sources *sources;
    struct copied_source *next;
    char *connection; /* its name when the copy began */
    char *handle;     /* as it is in ids */
    bool is_used;
    bool is_detaching;
};

struct copied_sources {
    pthread_mutex_t mutex;
    struct copied_source *first;
    atomic_uint count; /* mostly 0: then a call takes no lock */
};

struct copied_sources *
copied_sources_new(void)
{
    struct copied_sources *sources = memory_zeroed(sizeof *sources);
    pthread_mutex_init(&sources->mutex, NULL);
    return sources;
}

void
copied_sources_free(struct copied_sources *sources)
{
    pthread_mutex_destroy(&sources->mutex);
    free(sources);
}

static struct copied_source *
find(const struct copied_sources *sources, const struct connection *connection, const char *handle)
{
    for (struct copied_source *source = sources->first; source; source = source->next)
        if (strcmp(source->handle, handle) == 0 &&
            (strcmp(source->connection, connection->spec->name) == 0 ||
             spec_has_alias(connection->spec, source->connection)))
            return source;
    return NULL;
}

static struct copied_source *
add(struct copied_sources *sources, const struct connection *connection, const char *handle)
{
    struct copied_source *source = memory_zeroed(sizeof *source);
    *source = (struct copied_source){
        .sources = sources,
        .next = sources->first,
        .connection = memory_string(connection->spec->name),
        .handle = memory_string(handle),
    };
    sources->first = source;
    atomic_fetch_add(&sources->count, 1);
    return source;
}

struct copied_source *
copied_sources_begin(struct copied_sources *sources, const struct connection *connection,
                     const char *volume_id)
{
    struct global_id id;
    const char *handle = global_id_parse(ID_VOLUME, volume_id, &id) ? id.handle : volume_id;
    pthread_mutex_lock(&sources->mutex);
    struct copied_source *source =
        find(sources, connection, handle) ? NULL : add(sources, connection, handle);
    pthread_mutex_unlock(&sources->mutex);
    return source;
}

bool
copied_source_may_detach(struct copied_source *source)
{
    pthread_mutex_lock(&source->sources->mutex);
    source->is_detaching = !source->is_used;
    bool may = source->is_detaching;
    pthread_mutex_unlock(&source->sources->mutex);
    return may;
}

void
copied_source_end(struct copied_source **place)
{
    struct copied_source *source = *place;
    if (!source)
        return;
    struct copied_sources *sources = source->sources;
    *place = NULL;
    pthread_mutex_lock(&sources->mutex);
    struct copied_source **link = &sources->first;
    while (*link != source)
        link = &(*link)->next;
    *link = source->next;
    atomic_fetch_sub(&sources->count, 1);
    pthread_mutex_unlock(&sources->mutex);
    free(source->connection);
    free(source->handle);
    free(source);
}

struct error *
copied_sources_check(struct copied_sources *sources, const struct connection *connection,
                     const char *handle)
{
    bool is_detaching = false;
    if (!atomic_load(&sources->count))
        return NULL;
    pthread_mutex_lock(&sources->mutex);
    struct copied_source *source = find(sources, connection, handle);
    if (source && source->is_detaching)
        is_detaching = true;
    else if (source)
        source->is_used = true;
    pthread_mutex_unlock(&sources->mutex);
    return is_detaching
               ? error_new(CODE_ABORTED, "a copy of the volume has ended, and it is being detached "
                                         "from this node; try again")
               : NULL;
}
