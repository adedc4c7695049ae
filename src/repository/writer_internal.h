/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a writer:
 *
 *     writer.c          what callers see
 *     writer_state.c    the writer's error
 *     writer_seal.c     threads that compress chunks and seal them into the open pack
 *     writer_upload.c   threads that store packs, and the index of them
 */
#ifndef REPOSITORY_WRITER_INTERNAL_H
#define REPOSITORY_WRITER_INTERNAL_H

#include <pthread.h>

#include "repository/id_set.h"
#include "repository/writers.h"

#define WRITER_THREADS_MAX 16u
#define WRITER_UPLOADS_MAX 8u
/* Bytes and number of the chunks that wait or are being compressed. */
#define WRITER_QUEUE_BYTES (6u << 20)
#define WRITER_QUEUE_CHUNKS 256u

struct writer_chunk {
    struct writer_chunk *next;
    struct repository_id id;
    uint32_t size;
    struct buffer bytes;
};

struct writer_pack {
    struct writer_pack *next;
    struct pack *pack;
    unsigned sealing; /* threads at work in it */
    bool is_closed;   /* takes no more chunks */
};

/* Packs that are stored and stand in no index object yet. */
struct writer_index {
    struct buffer bytes;
    uint32_t packs;
    uint32_t entries;
};

struct repository_writer {
    struct repository *repository;
    bool always_stores; /* also what the repository has */
    unsigned losses;    /* of the objects when the writer began */
    size_t lost;        /* packs that were not there then */

    pthread_mutex_t lock;   /* of all that follows */
    pthread_cond_t queued;  /* a chunk for the sealing threads, or the end */
    pthread_cond_t filled;  /* a pack for the uploading threads, or the end */
    pthread_cond_t changed; /* space in the queue, a free pack, or idleness */
    struct error *error;    /* the first; nothing is done after it */
    bool is_ending;
    bool is_flushing; /* nothing new is taken */

    struct writers_own own;
    struct id_set pending; /* chunks put by us that the local index does not have */
    struct id_set garbage; /* packs that must not be used */

    struct writer_chunk *first; /* to be sealed */
    struct writer_chunk **last;
    struct writer_chunk *spare;
    size_t queue_bytes, queue_chunks; /* waiting, or in the hands of a sealing thread */

    struct writer_pack *open; /* the pack that chunks go to; or NULL */
    struct writer_pack *full; /* to be stored */
    struct writer_pack **full_last;
    struct writer_pack *free;
    unsigned packs; /* open, full, being stored or free */
    unsigned packs_max;
    unsigned uploading; /* packs that are full or being stored */

    struct writer_index index;
    struct repository_counters counters;

    pthread_t threads[WRITER_THREADS_MAX + WRITER_UPLOADS_MAX];
    unsigned thread_count;
};

/* The threads; the argument is the writer. */
void *writer_run_sealing(void *argument);
void *writer_run_uploading(void *argument);

/* With the lock: keeps the first error and wakes everybody. Takes the error; NULL is fine. */
void writer_fail(struct repository_writer *writer, struct error *error);
/* With the lock: a copy of that error, or NULL. */
MUST_CHECK struct error *writer_error(const struct repository_writer *writer);

/* Without the lock. ABORTED: others take it for dead, and may have deleted what it stored. */
MUST_CHECK struct error *writer_check_alive(struct repository_writer *writer);

/* With the lock: gives the closed pack to the uploading threads, if nobody seals into it. */
void writer_hand_over(struct repository_writer *writer, struct writer_pack *pack);

/* Without the lock: writes the index object of all packs that are stored. */
MUST_CHECK struct error *writer_put_index(struct repository_writer *writer);

/* Also makes a writer that stores chunks even if the repository has them, for prune. */
MUST_CHECK struct error *writer_open(struct repository *repository, enum writers_role role,
                                     bool always_stores, struct repository_writer **out);

#endif
