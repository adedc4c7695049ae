/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: the life of volumes and snapshots on this node. It joins a store (what exists) and a
 * back end (the data) and keeps the order of writes by which a crash at any instruction loses
 * nothing that was answered:
 *
 *     create    the data under its final handle, invisible; then one durable write; then the answer
 *     delete    one durable write; then the data goes
 *     long copy one durable write (COPYING); the data, by an operation (copy.h); one durable
 *               write (READY)
 *
 * Functions may block and are safe from any thread. A second request for a name that is being
 * worked on gets ABORTED.
 */
#ifndef VOLUMES_ENGINE_H
#define VOLUMES_ENGINE_H

#include <stdatomic.h>

#include "backends/backend.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "ops/ops.h"
#include "proto/records.pb-c.h"
#include "store/store.h"
#include "volumes/attached.h"
#include "volumes/name_locks.h"
#include "volumes/usage_cache.h"

typedef Skycap__Records__VolumeRecord volume_record;
typedef Skycap__Records__SnapshotRecord snapshot_record;
typedef Skycap__Records__GroupRecord group_record;
typedef Csi__V1__VolumeCapability volume_capability;

struct engine {
    struct store *store;
    struct backend *backend;
    const struct volume_use *use;
    struct name_locks locks;
    struct attached attached;
    struct ops *ops;
    const char *node_id;
    const char *boot_id;
    const struct log *log;
    uint64_t started_ms; /* no handle that it makes is older; see handle.h */
    uint64_t uptime_at_start_ms;
    uint64_t settled_ms;       /* up to when all is durable; of upkeep.c */
    bool is_first_of_boot;     /* what the last power failure undid may still be so; upkeep.c's */
    atomic_bool has_unsettled; /* something was made that a power failure may undo */
    struct upkeep *upkeep;
    struct usage_cache usages;
    struct {
        pthread_mutex_t lock;
        struct frozen_mount *first; /* their child has not ended yet */
        struct slow_source *slow; /* volumes that were frozen in vain: their copies take too long */
    } abandoned_freezes;          /* of freeze.c */
};

/* In a store that is being made again from the volumes: it does not know all of them yet. */
#define ENGINE_REBUILDING_KEY "engine/rebuilding"

struct engine_options {
    struct store *store; /* both are the caller's and outlive the engine */
    struct backend *backend;
    const struct volume_use *use; /* what the node does with volumes: volume_use.h */
    const char *node_id;
    const struct log *log;
    bool is_passive; /* nothing is done by itself: for looking only */
    const char
        *boot_id; /* of the running kernel; NULL: every start counts as one after a power failure */
};

/*
 * Makes good what a crash has left, and sweeps data that nothing refers to in the background
 * (upkeep.h). FAILED_PRECONDITION: there is data, but the store has never been written to, or does
 * not know all of it; it is not the one that belongs to the data.
 */
MUST_CHECK struct error *engine_open(const struct engine_options *options, struct engine **out);

/*
 * Before the last calls are waited for: those that wait for a copy return, and copies end, to be
 * taken up again at the next start.
 */
void engine_stop(struct engine *engine);
void engine_close(struct engine *engine);

#endif
