/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes records of ended operations: after a day, and the first ones if there are too many. There
 * is no index by age. A walk over all of them, at most 11,000, takes some 20 ms. It is done once an
 * hour, and when their number has reached its limit. In that case a tenth is removed, so that the
 * next operation does not need another walk.
 */
#include "base/clock.h"
#include "ops/ops_internal.h"

#define SWEEP_INTERVAL_MS (60u * 60 * 1000)
#define BATCH 64

struct sweep {
    struct ops *ops;
    int64_t oldest_ns; /* older ones are removed */
    size_t surplus;    /* how many are removed regardless of their age */
    size_t kept;
    struct arena arena; /* of the keys */
    struct store_change batch[BATCH];
    size_t count;
};

static struct error *
remove_batch(struct sweep *sweep)
{
    if (!sweep->count)
        return NULL;
    struct error *error = store_write(sweep->ops->options.store, sweep->batch, sweep->count, NULL);
    arena_clear(&sweep->arena);
    sweep->count = 0;
    if (error && error->code == CODE_ABORTED) {
        error_free(error); /* one was started again; the next sweep removes the others */
        return NULL;
    }
    return error;
}

static struct error *
visit(void *context, const struct store_entry *entry, const operation_record *record)
{
    struct sweep *sweep = context;
    if (!ops_has_ended(record))
        return NULL;
    if (record->updated_ns >= sweep->oldest_ns && !sweep->surplus) {
        sweep->kept++;
        return NULL;
    }
    if (sweep->surplus)
        sweep->surplus--;
    sweep->batch[sweep->count++] = (struct store_change){
        .key = arena_string(&sweep->arena, entry->key), .expected = entry->revision};
    return sweep->count == BATCH ? remove_batch(sweep) : NULL;
}

static struct error *
sweep_once(struct ops *ops, size_t surplus, size_t *kept)
{
    struct sweep sweep = {.ops = ops, .surplus = surplus};
    sweep.oldest_ns = clock_unix_ns() - (int64_t)ops->options.keep_seconds * 1000000000;
    arena_init(&sweep.arena, NULL, 0, SIZE_MAX);
    struct error *error = ops_walk(ops, visit, &sweep);
    if (!error)
        error = remove_batch(&sweep);
    arena_clear(&sweep.arena);
    *kept = sweep.kept;
    return error;
}

static bool
begin_sweep(struct ops *ops)
{
    pthread_mutex_lock(&ops->lock);
    uint64_t now = clock_now_ms();
    bool is_due = !ops->swept_ms || now - ops->swept_ms >= SWEEP_INTERVAL_MS ||
                  ops->ended_count > ops->options.max_ended;
    bool begins = is_due && !ops->is_sweeping;
    if (begins) {
        ops->is_sweeping = true;
        ops->swept_ms = now;
    }
    pthread_mutex_unlock(&ops->lock);
    return begins;
}

static void
end_sweep(struct ops *ops, size_t kept)
{
    pthread_mutex_lock(&ops->lock);
    ops->ended_count = kept;
    ops->is_sweeping = false;
    pthread_mutex_unlock(&ops->lock);
}

void
ops_sweep_if_due(struct ops *ops)
{
    size_t kept = 0;
    size_t max = ops->options.max_ended;
    if (!begin_sweep(ops))
        return;
    struct error *error = sweep_once(ops, 0, &kept);
    if (!error && kept > max)
        error = sweep_once(ops, kept - max + max / 10, &kept);
    if (error)
        log_warn(ops->options.log, "old operations could not be removed",
                 LOG_TEXT("error", error->message));
    error_free(error);
    end_sweep(ops, kept);
}
