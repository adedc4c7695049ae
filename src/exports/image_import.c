/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importing an image: see image_import.h. Threads take one chunk after the other; after each batch
 * all of them wait for the file to be durable, and the position is saved.
 */
#include "exports/image_import.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/memory.h"
#include "exports/crew.h"

#define THREADS 16u
#define BATCH_CHUNKS 512u

struct image_import {
    const struct image_import_options *options;
    struct image_reader manifest;
    pthread_mutex_t lock; /* of everything below */
    uint64_t next, batch_end;
    uint64_t done; /* chunks that are written, or zeros */
    struct error *error;
};

/* ---- a thread ---- */

static struct error *
write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t written = pwrite(fd, bytes + done, size - done, (off_t)(offset + done));
        if (written < 0 && errno != EINTR)
            return error_from_errno(errno, "write the image");
        done += written > 0 ? (size_t)written : 0;
    }
    return NULL;
}

static struct error *
copy_chunk(const struct image_import *import, uint64_t index, const struct repository_id *id,
           uint8_t *bytes)
{
    const struct image_import_options *options = import->options;
    uint64_t offset = index * IMAGE_CHUNK, left = options->size - offset;
    size_t size = 0;
    struct error *error = repository_read(options->repository, id, bytes, &size);
    if (!error && size != IMAGE_CHUNK)
        error = error_new(CODE_DATA_LOSS, "a chunk of the image has %zu bytes", size);
    return error ? error : write_all(options->fd, bytes, left < size ? (size_t)left : size, offset);
}

/* With the lock: one more chunk is done. */
static void
note_done(struct image_import *import)
{
    const struct image_import_options *options = import->options;
    uint64_t done = ++import->done * IMAGE_CHUNK;
    options->progress->report(options->progress->context,
                              done < options->size ? done : options->size, options->size);
}

/* The next chunk that is not zeros. False: there is none. */
static bool
take_chunk(struct image_import *import, uint64_t *index, struct repository_id *id)
{
    const struct progress *progress = import->options->progress;
    bool is_found = false;
    pthread_mutex_lock(&import->lock);
    while (!is_found && !import->error && import->next < import->batch_end) {
        *index = import->next++;
        if (progress->cancelled(progress->context))
            import->error = error_new(CODE_CANCELLED, "the import was cancelled");
        else
            import->error = image_reader_get(&import->manifest, *index, id);
        is_found = !import->error && !image_id_is_zero(id);
        if (!import->error && !is_found)
            note_done(import);
    }
    pthread_mutex_unlock(&import->lock);
    return is_found;
}

static void
end_chunk(struct image_import *import, struct error *error)
{
    pthread_mutex_lock(&import->lock);
    if (!error)
        note_done(import);
    if (error && !import->error)
        import->error = STEAL(error);
    pthread_mutex_unlock(&import->lock);
    error_free(error);
}

static void *
copy_chunks(void *context)
{
    struct image_import *import = context;
    uint8_t *bytes = memory_map(REPOSITORY_CHUNK_MAX);
    uint64_t index;
    struct repository_id id;
    while (take_chunk(import, &index, &id))
        end_chunk(import, copy_chunk(import, index, &id, bytes));
    memory_unmap(bytes, REPOSITORY_CHUNK_MAX);
    return NULL;
}

/* ---- batches ---- */

static struct error *
run_threads(struct image_import *import)
{
    struct error *error = crew_run(THREADS, copy_chunks, import);
    return error ? error : STEAL(import->error);
}

static struct error *
run_batch(struct image_import *import)
{
    const struct image_import_options *options = import->options;
    uint64_t left = import->manifest.count - import->next;
    import->batch_end = import->next + (left < BATCH_CHUNKS ? left : BATCH_CHUNKS);
    struct error *error = run_threads(import);
    if (!error && fdatasync(options->fd) != 0)
        error = error_from_errno(errno, "make the image durable");
    if (!error && options->save)
        error = options->save(options->context, import->next);
    return error;
}

struct error *
image_import_run(const struct image_import_options *options)
{
    struct image_import import = {
        .options = options, .next = options->saved_chunks, .done = options->saved_chunks};
    pthread_mutex_init(&import.lock, NULL);
    struct error *error =
        image_reader_open(&import.manifest, options->repository, &options->root, options->size);
    while (!error && import.next < import.manifest.count)
        error = run_batch(&import);
    image_reader_close(&import.manifest);
    pthread_mutex_destroy(&import.lock);
    return error;
}
