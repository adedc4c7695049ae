/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a repository: see repository.h. writer_internal.h names the other parts. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "repository/garbage.h"
#include "repository/patience.h"
#include "repository/writer_internal.h"

/* ---- opening and closing ---- */

static struct error *
start_threads(struct repository_writer *writer, unsigned count, void *(*run)(void *))
{
    for (unsigned i = 0; i < count; i++) {
        int result = patience_start_thread(&writer->threads[writer->thread_count], run, writer);
        if (result)
            return error_from_errno(result, "start a thread");
        writer->thread_count++;
    }
    return NULL;
}

static struct error *
start(struct repository_writer *writer)
{
    unsigned sealing = writer->repository->threads, uploads = writer->packs_max - 1;
    if (sealing > WRITER_THREADS_MAX)
        sealing = WRITER_THREADS_MAX;
    struct error *error = start_threads(writer, sealing, writer_run_sealing);
    return error ? error : start_threads(writer, uploads, writer_run_uploading);
}

static struct repository_writer *
make(struct repository *repository, bool always_stores)
{
    struct repository_writer *writer = memory_zeroed(sizeof *writer);
    unsigned uploads = repository->objects->ops->uploads;
    pthread_condattr_t monotonic;
    writer->repository = repository;
    writer->always_stores = always_stores;
    writer->losses = atomic_load(&repository->objects->losses);
    writer->last = &writer->first;
    writer->full_last = &writer->full;
    writer->packs_max = 1 + (uploads > WRITER_UPLOADS_MAX ? WRITER_UPLOADS_MAX : uploads);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->queued, &monotonic);
    pthread_cond_init(&writer->filled, &monotonic);
    pthread_cond_init(&writer->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return writer;
}

/*
 * Which packs may be deleted is not known then, so that none could be used: prune alone may decide
 * that the list is not needed any more.
 */
static struct error *
refuse_damaged_garbage(struct error *error)
{
    if (!error || error->code != CODE_DATA_LOSS)
        return error;
    error->code = CODE_FAILED_PRECONDITION;
    return error_wrap(error, "a list of packs to be deleted is damaged: run `skycap snapshot "
                             "prune`, which makes it anew, and repeat this");
}

/*
 * The order matters: once the writer's object is there, a prune that does not know this writer has
 * already shown which packs it is going to delete.
 */
struct error *
writer_open(struct repository *repository, enum writers_role role, bool always_stores,
            struct repository_writer **out)
{
    struct repository_writer *writer AUTO(repository_writer_cleanup) =
        make(repository, always_stores);
    struct error *error = writers_register(repository, role, &writer->own);
    if (!error)
        error = refuse_damaged_garbage(garbage_load(repository, &writer->garbage, NULL));
    if (!error && always_stores)
        error = repository_sync(repository);
    if (!error && !always_stores)
        error = repository_sync_packs(repository, &writer->garbage, &writer->lost);
    if (!error)
        error = start(writer);
    if (!error)
        *out = STEAL(writer);
    return error_wrap(error, "write to the repository");
}

struct error *
repository_writer_open(struct repository *repository, struct repository_writer **out)
{
    return writer_open(repository, WRITERS_EXPORT, false, out);
}

static void
free_packs(struct writer_pack *pack)
{
    for (struct writer_pack *next; pack; pack = next) {
        next = pack->next;
        pack_free(pack->pack);
        free(pack);
    }
}

static void
free_all(struct repository_writer *writer)
{
    free_packs(writer->open);
    free_packs(writer->full);
    free_packs(writer->free);
    for (struct writer_chunk *next; writer->spare; writer->spare = next) {
        next = writer->spare->next;
        buffer_clear(&writer->spare->bytes);
        free(writer->spare);
    }
    id_set_clear(&writer->pending);
    id_set_clear(&writer->garbage);
    buffer_clear(&writer->index.bytes);
    error_free(writer->error);
    pthread_cond_destroy(&writer->queued);
    pthread_cond_destroy(&writer->filled);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

void
repository_writer_close(struct repository_writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->is_ending = true;
    pthread_cond_broadcast(&writer->queued);
    pthread_cond_broadcast(&writer->filled);
    pthread_mutex_unlock(&writer->lock);
    for (unsigned i = 0; i < writer->thread_count; i++)
        pthread_join(writer->threads[i], NULL);
    /* The next writer need not store again what is complete. */
    struct error *error = writer->error ? NULL : writer_put_index(writer);
    error_free(error);
    error = writers_end(writer->repository, &writer->own);
    if (error && writer->repository->log)
        log_warn(writer->repository->log, "a writer's object stays until prune removes it",
                 LOG_TEXT("error", error->message));
    error_free(error);
    free_all(writer);
}

void
repository_writer_cleanup(struct repository_writer **writer)
{
    repository_writer_close(*writer);
}

/* ---- putting ---- */

/* Whether the repository has the chunk in a pack that stays. With the lock. */
static struct error *
is_known(struct repository_writer *writer, const struct repository_id *id, bool *known)
{
    struct location location;
    *known = id_set_has(&writer->pending, id->bytes);
    if (*known || writer->always_stores)
        return NULL;
    struct error *error = locations_find(writer->repository->locations, id, &location, known);
    if (!error && *known)
        *known = !location.is_lost && !id_set_has(&writer->garbage, location.pack.bytes);
    return error;
}

/* With the lock: waits until there is space in the queue. */
static struct error *
wait_for_space(struct repository_writer *writer, size_t size)
{
    while (!writer->error &&
           (writer->is_flushing || writer->queue_chunks == WRITER_QUEUE_CHUNKS ||
            (writer->queue_chunks && writer->queue_bytes + size > WRITER_QUEUE_BYTES)))
        pthread_cond_wait(&writer->changed, &writer->lock);
    return writer_error(writer);
}

static struct writer_chunk *
take_spare(struct repository_writer *writer)
{
    struct writer_chunk *chunk = writer->spare;
    if (chunk)
        writer->spare = chunk->next;
    else
        chunk = memory_zeroed(sizeof *chunk);
    return chunk;
}

/* With the lock, which it gives up while it copies. */
static void
enqueue(struct repository_writer *writer, const void *bytes, size_t size,
        const struct repository_id *id)
{
    struct writer_chunk *chunk = take_spare(writer);
    id_set_add(&writer->pending, id->bytes);
    writer->queue_bytes += size;
    writer->queue_chunks++;
    writer->counters.bytes_new += size;
    pthread_mutex_unlock(&writer->lock);
    chunk->next = NULL;
    chunk->id = *id;
    chunk->size = (uint32_t)size;
    chunk->bytes.size = 0;
    buffer_append(&chunk->bytes, bytes, size);
    pthread_mutex_lock(&writer->lock);
    *writer->last = chunk;
    writer->last = &chunk->next;
    pthread_cond_signal(&writer->queued);
}

struct error *
repository_writer_put(struct repository_writer *writer, const void *bytes, size_t size,
                      struct repository_id *id)
{
    bool known = false;
    if (!size || size > REPOSITORY_CHUNK_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "a chunk has 1 to %u bytes, not %zu",
                         REPOSITORY_CHUNK_MAX, size);
    struct error *error = sealing_identify(writer->repository->sealing, bytes, size, id);
    if (error)
        return error;
    pthread_mutex_lock(&writer->lock);
    error = wait_for_space(writer, size);
    if (!error)
        error = is_known(writer, id, &known);
    if (!error && !known)
        enqueue(writer, bytes, size, id);
    if (!error) {
        writer->counters.chunks++;
        writer->counters.bytes += size;
        writer->counters.chunks_reused += known;
    }
    pthread_mutex_unlock(&writer->lock);
    return error;
}

bool
repository_writer_has_losses(const struct repository_writer *writer)
{
    return writer->lost > 0;
}

struct error *
repository_writer_reuse(struct repository_writer *writer, const struct repository_id *id,
                        bool *known)
{
    *known = false;
    pthread_mutex_lock(&writer->lock);
    struct error *error = writer_error(writer);
    if (!error)
        error = is_known(writer, id, known);
    if (*known) {
        writer->counters.chunks++;
        writer->counters.chunks_reused++;
    }
    pthread_mutex_unlock(&writer->lock);
    return error;
}

/* ---- flush and commit ---- */

static bool
is_busy(const struct repository_writer *writer)
{
    return writer->queue_chunks || writer->uploading;
}

/* With the lock: everything that was put is in packs, and the packs are stored. */
static struct error *
drain(struct repository_writer *writer)
{
    while (!writer->error && writer->queue_chunks)
        pthread_cond_wait(&writer->changed, &writer->lock);
    struct writer_pack *pack = writer->open;
    if (!writer->error && pack) {
        writer->open = NULL;
        pack->is_closed = true;
        writer->uploading++;
        writer_hand_over(writer, pack);
    }
    while (!writer->error && is_busy(writer))
        pthread_cond_wait(&writer->changed, &writer->lock);
    return writer_error(writer);
}

struct error *
repository_writer_flush(struct repository_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    while (writer->is_flushing)
        pthread_cond_wait(&writer->changed, &writer->lock);
    writer->is_flushing = true;
    struct error *error = drain(writer);
    pthread_mutex_unlock(&writer->lock);
    if (!error)
        error = writer_put_index(writer);
    pthread_mutex_lock(&writer->lock);
    writer->is_flushing = false;
    pthread_cond_broadcast(&writer->changed);
    if (error && !writer->error)
        writer_fail(writer, error_new(error->code, "%s", error->message));
    pthread_mutex_unlock(&writer->lock);
    return error;
}

struct error *
repository_writer_finish(struct repository_writer *writer)
{
    struct error *error = repository_writer_flush(writer);
    return error ? error : writer_check_alive(writer);
}

struct error *
repository_writer_commit(struct repository_writer *writer, const void *record, size_t size,
                         char name[REPOSITORY_NAME_BYTES])
{
    struct repository *repository = writer->repository;
    struct object_name object;
    struct repository_id id;
    if (size > REPOSITORY_RECORD_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "a record of %zu bytes is too large", size);
    struct error *error = repository_writer_finish(writer);
    if (!error)
        error = repository_put(repository, OBJECT_SNAPSHOT, record, size, &object);
    if (error)
        return error;
    /* A prune that took this writer for dead may have deleted what the record refers to. */
    error = writer_check_alive(writer);
    if (error && error->code == CODE_ABORTED)
        error_free(objects_delete(repository->objects, OBJECT_SNAPSHOT, &object));
    memcpy(id.bytes, object.bytes, sizeof id.bytes);
    repository_id_print(&id, name);
    return error;
}

void
repository_writer_count(struct repository_writer *writer, struct repository_counters *out)
{
    pthread_mutex_lock(&writer->lock);
    *out = writer->counters;
    pthread_mutex_unlock(&writer->lock);
}
