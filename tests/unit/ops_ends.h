/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of operations share: work that the test holds in its hand, and a room on a store in memory. */
#ifndef UNIT_OPS_ENDS_H
#define UNIT_OPS_ENDS_H

#include <pthread.h>

#include "ops/ops.h"
#include "ops/ops_internal.h"
#include "store_ends.h"

#define PATIENCE_MS 10000
#define STATE OPERATION_STATE

static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};

/* ---- work that the test holds in its hand ---- */

struct job {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool may_end;
    bool fails;
    unsigned runs;
    unsigned running;
    unsigned most_running;
    unsigned settled;
    unsigned freed;
};

/* A key of its own for each piece of work. */
struct piece {
    struct job *job;
    char key[64];
    uint64_t expected;
};

static inline void
job_init(struct job *job)
{
    *job = (struct job){.may_end = false};
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->changed, NULL);
}

static inline void
allow_end(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    job->may_end = true;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

static inline unsigned
read_count(struct job *job, const unsigned *count)
{
    pthread_mutex_lock(&job->lock);
    unsigned value = *count;
    pthread_mutex_unlock(&job->lock);
    return value;
}

static inline bool
wait_for_count(struct job *job, const unsigned *count, unsigned wanted)
{
    for (double end = now_ms() + PATIENCE_MS; now_ms() < end; sleep_ms(2))
        if (read_count(job, count) >= wanted)
            return true;
    return false;
}

static inline bool
wait_for_leave(struct job *job, const struct progress *progress)
{
    for (;;) {
        pthread_mutex_lock(&job->lock);
        bool may_end = job->may_end;
        pthread_mutex_unlock(&job->lock);
        if (may_end)
            return true;
        progress->report(progress->context, 40, 100);
        if (progress->cancelled(progress->context))
            return false;
        sleep_ms(2);
    }
}

static inline struct error *
run_piece(void *context, const struct progress *progress)
{
    struct job *job = ((struct piece *)context)->job;
    pthread_mutex_lock(&job->lock);
    job->runs++;
    if (++job->running > job->most_running)
        job->most_running = job->running;
    pthread_mutex_unlock(&job->lock);
    bool is_done = wait_for_leave(job, progress);
    pthread_mutex_lock(&job->lock);
    job->running--;
    pthread_mutex_unlock(&job->lock);
    if (!is_done)
        return error_new(CODE_CANCELLED, "told to end");
    return job->fails ? error_new(CODE_RESOURCE_EXHAUSTED, "the disk is full") : NULL;
}

static inline void
settle_piece(void *context, const struct error *result, struct arena *arena,
             struct ops_changes *out)
{
    struct piece *piece = context;
    pthread_mutex_lock(&piece->job->lock);
    piece->job->settled++;
    pthread_mutex_unlock(&piece->job->lock);
    out->items[out->count++] =
        text_change(arena_string(arena, piece->key), result ? NULL : "ready", piece->expected);
}

static inline void
free_piece(void *context)
{
    struct piece *piece = context;
    pthread_mutex_lock(&piece->job->lock);
    piece->job->freed++;
    pthread_mutex_unlock(&piece->job->lock);
    free(piece);
}

static inline struct ops_work
work_for(struct job *job, const char *id)
{
    struct piece *piece = malloc(sizeof *piece);
    *piece = (struct piece){.job = job, .expected = STORE_ANY};
    snprintf(piece->key, sizeof piece->key, "row/%s", id);
    return (struct ops_work){piece, run_piece, settle_piece, free_piece};
}

static inline struct ops_spec
spec_for(struct job *job, const char *id)
{
    return (struct ops_spec){.id = id,
                             .kind = "test",
                             .subject = "subject",
                             .units = "bytes",
                             .description = "a test",
                             .work = work_for(job, id)};
}

/* With a row "copying" in the same write. */
static inline struct error *
start(struct ops *ops, struct job *job, const char *id)
{
    char key[64];
    struct ops_spec spec = spec_for(job, id);
    snprintf(key, sizeof key, "row/%s", id);
    struct store_change row = text_change(key, "copying", STORE_ABSENT);
    spec.changes = &row;
    spec.change_count = 1;
    return ops_start(ops, &spec);
}

/* ---- a room on a store in memory ---- */

struct bench {
    struct store *store;
    struct ops *ops;
    struct arena arena;
    struct job job;
};

static inline void
bench_open(struct bench *bench, struct ops_options options)
{
    bench->store = open_store("memory:");
    options.store = bench->store;
    if (!options.log)
        options.log = &quiet;
    bench->ops = ops_open(&options);
    arena_init(&bench->arena, NULL, 0, SIZE_MAX);
    job_init(&bench->job);
}

static inline void
bench_close(struct bench *bench)
{
    ops_close(bench->ops);
    store_close(bench->store);
    arena_clear(&bench->arena);
}

static inline operation_record *
wait_for(struct bench *bench, const char *id)
{
    operation_record *record = NULL;
    CHECK_OK(ops_wait(bench->ops, id, PATIENCE_MS, &bench->arena, &record));
    return record;
}

static inline operation_record *
stored(struct bench *bench, const char *id)
{
    operation_record *record = NULL;
    CHECK_OK(ops_read(bench->ops, id, &bench->arena, &record, NULL));
    return record;
}

#endif
