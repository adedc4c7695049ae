/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the engine: see engine.h. */
#include "volumes/engine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/copy.h"
#include "volumes/export.h"
#include "volumes/figures.h"
#include "volumes/freeze.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/replica.h"
#include "volumes/repository_counts.h"
#include "volumes/repository_task.h"
#include "volumes/restore.h"
#include "volumes/settled.h"
#include "volumes/upkeep.h"

/* A source that looks for what has changed in a large tree sends nothing meanwhile. */
#define LONGEST_SILENCE_MS 600000

static struct error *
find_data(void *context, const struct backend_entry *entry)
{
    (void)context;
    if (!entry->is_whole)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "there are volumes, but their store is gone: put it back, or run `skycap "
                     "doctor --rebuild` to rebuild it from the volumes");
}

static struct error *
check_rebuilt(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry mark;
    struct error *error = store_get(engine->store, ENGINE_REBUILDING_KEY, &arena, &mark);
    if (!error)
        return error_new(CODE_FAILED_PRECONDITION, "rebuilding the store from the volumes was not "
                                                   "finished: run `skycap doctor --rebuild`");
    return error_forgive(error, CODE_NOT_FOUND);
}

/* With an empty store, the sweep would delete all data; with an incomplete one, much of it. */
static struct error *
check_store(struct engine *engine)
{
    uint64_t revision;
    struct error *error = store_revision(engine->store, &revision);
    if (error)
        return error;
    return revision ? check_rebuilt(engine) : backend_list(engine->backend, find_data, NULL);
}

static struct error *
start_clock(struct engine *engine)
{
    uint64_t newest_ms;
    struct error *error = settled_find_newest(engine, &newest_ms);
    if (error)
        return error;
    handle_start_clock(engine, newest_ms);
    if (newest_ms > (uint64_t)clock_unix_ms())
        log_warn(engine->log, "the system clock is earlier than the newest volume; set it");
    return NULL;
}

struct error *
engine_open(const struct engine_options *options, struct engine **out)
{
    struct engine *engine = memory_zeroed(sizeof *engine);
    engine->store = options->store;
    engine->backend = options->backend;
    engine->use = options->use;
    engine->node_id = options->node_id;
    engine->topology = options->topology;
    if (options->is_in_cluster)
        handle_print_home(options->node_id, engine->home);
    engine->boot_id = options->boot_id ? options->boot_id : "";
    engine->log = options->log;
    name_locks_init(&engine->locks);
    attached_init(&engine->attached);
    transfer_ids_init(&engine->transfer_ids);
    engine->silence_ms = LONGEST_SILENCE_MS;
    engine->figures = figures_cache_new();
    engine->repository_counts = repository_counts_new();
    stream_slots_init(&engine->slots);
    repository_pool_init(&engine->repository_pool);
    engine->repositories = options->repositories;
    engine->cache_directory = options->cache_directory;
    pthread_mutex_init(&engine->abandoned_freezes.lock, NULL);
    engine->ops = ops_open(&(struct ops_options){.store = options->store, .log = options->log});
    struct error *error = check_store(engine);
    if (!error)
        error = start_clock(engine);
    if (!error)
        error = move_read_compared(engine);
    if (!error && !options->is_passive)
        error = freeze_recover(engine);
    if (!error && !options->is_passive)
        error = restore_volumes(engine);
    if (!error && !options->is_passive)
        error = copy_resume_all(engine);
    if (!error && !options->is_passive)
        error = move_resume_all(engine);
    if (!error && !options->is_passive)
        error = replica_resume_all(engine);
    if (!error && !options->is_passive)
        error = export_resume_all(engine);
    if (!error && !options->is_passive)
        error = repository_task_end_all(engine);
    if (error) {
        engine_close(engine);
        return error;
    }
    if (!options->is_passive)
        upkeep_start(engine, &engine->upkeep);
    *out = engine;
    return NULL;
}

void
engine_join(struct engine *engine, const struct remote_data *remote,
            const struct move_cluster *moves, const struct replica_cluster *replicas)
{
    atomic_store(&engine->remote, remote);
    atomic_store(&engine->moves, moves);
    atomic_store(&engine->replicas, replicas);
    move_upkeep_start(engine, &engine->move_upkeep);
    replica_upkeep_start(engine);
}

void
engine_stop(struct engine *engine)
{
    atomic_store(&engine->is_stopping, true);
    ops_stop(engine->ops);
}

void
engine_close(struct engine *engine)
{
    if (!engine)
        return;
    replica_upkeep_stop(engine);
    move_upkeep_stop(engine->move_upkeep);
    ops_close(engine->ops);
    upkeep_stop(engine->upkeep);
    freeze_clear(engine);
    pthread_mutex_destroy(&engine->abandoned_freezes.lock);
    usage_cache_clear(&engine->usages);
    figures_cache_free(engine->figures);
    repository_counts_free(engine->repository_counts);
    attached_clear(&engine->attached);
    transfer_ids_clear(&engine->transfer_ids);
    stream_slots_clear(&engine->slots);
    repository_pool_clear(&engine->repository_pool);
    name_locks_clear(&engine->locks);
    free(engine);
}
