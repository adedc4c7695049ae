/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that store full packs. When enough packs are stored, the thread that stored the last one
 * makes them durable and writes their index object. Only then does the local index have them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "repository/writer_internal.h"

/* With the lock. NULL: it is time to end, or to refresh the writer's object. */
static struct writer_pack *
take_pack(struct repository_writer *writer)
{
    struct timespec until = clock_after_ms(WRITERS_REFRESH_MS);
    int result = 0;
    while (!writer->full && !writer->is_ending && !result)
        result = pthread_cond_timedwait(&writer->filled, &writer->lock, &until);
    struct writer_pack *pack = writer->full;
    if (pack) {
        writer->full = pack->next;
        if (!writer->full)
            writer->full_last = &writer->full;
    }
    return pack;
}

/* Without the lock. */
static struct error *
put_pack(struct repository_writer *writer, struct pack *pack)
{
    struct repository *repository = writer->repository;
    struct error *error = pack_finish(pack, repository->sealing);
    if (!error)
        error = objects_put(repository->objects, OBJECT_PACK, &pack->name, pack->bytes, pack->size,
                            OBJECTS_SOON);
    return error;
}

/* With the lock. */
static void
note_pack(struct repository_writer *writer, const struct pack *pack)
{
    struct index_pack entry = {.name = pack->name,
                               .size = pack->size,
                               .count = pack->count,
                               .entries = pack->entries.bytes};
    memcpy(entry.salt, pack->key.salt, sizeof entry.salt);
    index_append(&writer->index.bytes, &entry);
    writer->index.packs++;
    writer->index.entries += pack->count;
    writer->counters.packs++;
    writer->counters.bytes_stored += pack->size;
}

/* With the lock: the local index has these chunks now. */
static void
forget_pending(struct repository_writer *writer, const struct buffer *index)
{
    struct index_pack pack;
    size_t at = 0;
    bool found = true;
    while (found) {
        error_free(index_next(index, &at, &pack, &found));
        for (uint32_t i = 0; found && i < pack.count; i++)
            id_set_remove(&writer->pending, index_entry(&pack, i).id.bytes);
    }
}

/* Another writer's sync may have met our packs, and failed. */
static struct error *
sync_packs(struct repository_writer *writer)
{
    struct objects *objects = writer->repository->objects;
    struct error *error = objects_sync(objects);
    if (!error && atomic_load(&objects->losses) != writer->losses)
        error = error_new(CODE_UNAVAILABLE, "a pack could not be made durable: try again");
    return error;
}

struct error *
writer_put_index(struct repository_writer *writer)
{
    struct repository *repository = writer->repository;
    struct object_name name;
    pthread_mutex_lock(&writer->lock);
    struct buffer index AUTO(buffer_clear) = writer->index.bytes;
    writer->index = (struct writer_index){0};
    pthread_mutex_unlock(&writer->lock);
    if (!index.size)
        return NULL;
    struct error *error = sync_packs(writer);
    if (!error)
        error = writer_check_alive(writer);
    if (!error)
        error = repository_put(repository, OBJECT_INDEX, index.bytes, index.size, &name);
    if (!error)
        error = locations_add(repository->locations, &name, &index);
    if (error)
        return error;
    pthread_mutex_lock(&writer->lock);
    forget_pending(writer, &index);
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* With the lock, which it gives up while it works. */
static void
store(struct repository_writer *writer, struct writer_pack *pack)
{
    struct error *error = NULL;
    bool has_failed = writer->error != NULL;
    pthread_mutex_unlock(&writer->lock);
    if (!has_failed)
        error = put_pack(writer, pack->pack);
    pthread_mutex_lock(&writer->lock);
    if (!has_failed && !error)
        note_pack(writer, pack->pack);
    pack->next = writer->free;
    writer->free = pack;
    pthread_cond_broadcast(&writer->changed);
    bool is_enough = writer->index.packs >= INDEX_PACKS || writer->index.entries >= INDEX_ENTRIES;
    if (!error && is_enough) {
        pthread_mutex_unlock(&writer->lock);
        error = writer_put_index(writer);
        pthread_mutex_lock(&writer->lock);
    }
    writer_fail(writer, error);
    writer->uploading--;
    pthread_cond_broadcast(&writer->changed);
}

/* With the lock, which it gives up while it works. Only one thread needs to do it. */
static void
refresh(struct repository_writer *writer)
{
    struct writers_own own = writer->own;
    if (clock_boot_ms() - own.refreshed_at < WRITERS_REFRESH_MS)
        return;
    writer->own.refreshed_at = clock_boot_ms();
    pthread_mutex_unlock(&writer->lock);
    struct error *error = writers_refresh(writer->repository, &own);
    pthread_mutex_lock(&writer->lock);
    writer->own.refreshed_at = own.refreshed_at;
    writer_fail(writer, error);
}

void *
writer_run_uploading(void *argument)
{
    struct repository_writer *writer = argument;
    pthread_mutex_lock(&writer->lock);
    while (!writer->is_ending || writer->full) {
        struct writer_pack *pack = take_pack(writer);
        if (pack)
            store(writer, pack);
        if (!writer->error)
            refresh(writer);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}
