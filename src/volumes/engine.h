/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: the life of volumes and snapshots on this node. It combines a store (what exists)
 * with a back end (the data). Its order of writes ensures that a crash at any point loses nothing
 * that was answered:
 *
 *     create    the data under its final handle, invisible; then one durable write; then the answer
 *     delete    one durable write; then the data is removed
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
#include "base/text_map.h"
#include "ops/ops.h"
#include "proto/records.pb-c.h"
#include "store/store.h"
#include "volumes/attached.h"
#include "volumes/name_locks.h"
#include "volumes/repository_pool.h"
#include "volumes/stream_slots.h"
#include "volumes/transfer_ids.h"
#include "volumes/usage_cache.h"

struct figures_cache;
struct repository_counts;
struct move_cluster;
struct move_upkeep;
struct remote_data;
struct replica_cluster;
struct replica_upkeep;

typedef Skycap__Records__VolumeRecord volume_record;
typedef Skycap__Records__SnapshotRecord snapshot_record;
typedef Skycap__Records__GroupRecord group_record;
typedef Csi__V1__VolumeCapability volume_capability;

#define HANDLE_HOME_SIZE 9 /* with the NUL; see handle.h */

struct engine {
    struct store *store;
    struct backend *backend;
    const struct volume_use *use;
    struct name_locks locks;
    struct attached attached;
    struct ops *ops;
    const char *node_id;
    struct text_map topology;    /* segments of the node beside its id */
    char home[HANDLE_HOME_SIZE]; /* "": the node is in no cluster; see handle.h */
    const char *boot_id;
    const struct log *log;
    uint64_t started_ms; /* no handle that it makes is older; see handle.h */
    uint64_t uptime_at_start_ms;
    uint64_t settled_ms;       /* everything older is durable; owned by upkeep.c */
    bool is_first_of_boot;     /* not all is repaired since the last power failure; upkeep.c */
    atomic_bool has_unsettled; /* something new could be undone by a power failure */
    struct upkeep *upkeep;
    _Atomic(const struct remote_data *) remote; /* NULL: the node is in no cluster, or not yet */
    _Atomic(const struct move_cluster *) moves; /* the same */
    struct move_upkeep *move_upkeep;
    _Atomic(const struct replica_cluster *) replicas; /* the same */
    _Atomic(struct replica_upkeep *) replica_upkeep;
    struct stream_slots slots;      /* of snapshots that other nodes fetch */
    atomic_ullong compared_returns; /* 1 more than move_presence.returns was; see move_return.c */
    atomic_bool knows_its_volumes;  /* the store was compared with the registry; move_await.c */
    uint32_t silence_ms; /* a transfer whose source sends nothing for so long is begun again */
    struct usage_cache usages;
    struct figures_cache *figures;
    struct repository_counts *repository_counts;
    atomic_uint_fast64_t changes; /* of volumes and snapshots since its start; rows.c counts */
    struct transfer_ids transfer_ids;
    const struct repository_places *repositories; /* NULL: none */
    const char *cache_directory;                  /* for what can be made again */
    struct repository_pool repository_pool;
    _Atomic(const struct repository_nodes *) repository_nodes; /* as `remote` */
    atomic_bool is_stopping;                                   /* engine_stop was called */
    struct {
        pthread_mutex_t lock;
        struct frozen_mount *first; /* whose child has not ended yet */
        struct slow_source *slow;   /* volumes whose copies take longer than a freeze may last */
    } abandoned_freezes;            /* owned by freeze.c */
};

/* Set while the store is being rebuilt from the volumes: it does not know all of them yet. */
#define ENGINE_REBUILDING_KEY "engine/rebuilding"

struct engine_options {
    struct store *store; /* both belong to the caller and outlive the engine */
    struct backend *backend;
    const struct volume_use *use; /* what the node does with volumes: volume_use.h */
    const char *node_id;
    const struct log *log;
    bool is_passive; /* no background work: only for reading */
    /* Of the running kernel; NULL: treats each start as one after a power failure. */
    const char *boot_id;
    struct text_map topology; /* segments of the node beside its id; its texts outlive the engine */
    bool is_in_cluster;       /* handles contain the node's home */
    const struct repository_places *repositories; /* repository_pool.h; NULL: none */
    const char *cache_directory; /* for what can be made again; made if it is missing */
};

/*
 * Repairs what a crash has left. In the background, removes data that nothing refers to (upkeep.h).
 * FAILED_PRECONDITION: the store does not belong to the data: there is data, but the store is empty
 * or incomplete.
 */
MUST_CHECK struct error *engine_open(const struct engine_options *options, struct engine **out);

/*
 * From now on copies can be made of what other nodes have, and volumes can move. All must outlive
 * the engine's work. Called once.
 */
void engine_join(struct engine *engine, const struct remote_data *remote,
                 const struct move_cluster *moves, const struct replica_cluster *replicas);

/*
 * Called before the server waits for its last calls: calls that wait for a copy return, and copies
 * stop, to be resumed at the next start.
 */
void engine_stop(struct engine *engine);
void engine_close(struct engine *engine);

#endif
