/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume snapshotter in a plugin, with the calls of version 2. A snapshotter of version 1 is
 * adapted: its snapshots count as complete at once, and cancelling them does nothing.
 *
 * Before each call the plugin is started if it does not run, and Init is repeated. A call that the
 * plugin did not survive fails with UNAVAILABLE and is not repeated: it may have been carried out.
 * So may one that was not answered in time (DEADLINE_EXCEEDED); the plugin is killed then. After
 * ten starts that failed in a row, every call fails. For one thread at a time.
 */
#ifndef VELERO_HOST_SNAPSHOTTER_H
#define VELERO_HOST_SNAPSHOTTER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text_map.h"
#include "proto/velero_v1.pb-c.h"
#include "velero/host.h"

struct host_snapshotter;

/* Starts the plugin and calls Init. `config` and the host must outlive the snapshotter. */
MUST_CHECK struct error *host_snapshotter_open(struct host *host, const struct host_plugin *plugin,
                                               const struct text_map *config,
                                               struct host_snapshotter **out);

/* Ends the plugin. NULL is ignored. */
void host_snapshotter_close(struct host_snapshotter *snapshotter);

/* Whether it is of version 1. */
bool host_snapshotter_is_adapted(const struct host_snapshotter *snapshotter);

/* How often the plugin was started. */
unsigned host_snapshotter_starts(const struct host_snapshotter *snapshotter);

/* What a snapshotter tells about a volume; iops 0: nothing. */
struct host_volume {
    const char *id; /* "" if the volume is not one of the plugin's */
    const char *type;
    const char *zone; /* given by the caller */
    int64_t iops;
};

/* `volume` is the PersistentVolume, in JSON. Answers live in the arena. */
MUST_CHECK struct error *host_snapshotter_get_volume_id(struct host_snapshotter *snapshotter,
                                                        const char *volume, struct arena *arena,
                                                        const char **id);

/* Reads type and iops of the volume with the given id and zone. */
MUST_CHECK struct error *host_snapshotter_get_volume_info(struct host_snapshotter *snapshotter,
                                                          struct host_volume *volume,
                                                          struct arena *arena);

/* Returns as soon as the snapshot has an id; see host_snapshotter_progress. */
MUST_CHECK struct error *host_snapshotter_create(struct host_snapshotter *snapshotter,
                                                 const struct host_volume *volume,
                                                 const struct text_map *tags, struct arena *arena,
                                                 const char **snapshot);

MUST_CHECK struct error *host_snapshotter_delete(struct host_snapshotter *snapshotter,
                                                 const char *snapshot);

/* A new volume with the data of the snapshot; type, zone and iops as they were, the id is new. */
MUST_CHECK struct error *host_snapshotter_create_volume(struct host_snapshotter *snapshotter,
                                                        const char *snapshot,
                                                        struct host_volume *volume,
                                                        struct arena *arena);

/* The PersistentVolume, changed so that it names the volume; in JSON, in the arena. */
MUST_CHECK struct error *host_snapshotter_set_volume_id(struct host_snapshotter *snapshotter,
                                                        const char *volume, const char *id,
                                                        struct arena *arena, const char **out);

/* Never NULL on success. */
MUST_CHECK struct error *host_snapshotter_progress(struct host_snapshotter *snapshotter,
                                                   const char *snapshot, struct arena *arena,
                                                   Generated__OperationProgress **out);

/* The request was accepted; host_snapshotter_progress tells what became of it. */
MUST_CHECK struct error *host_snapshotter_cancel(struct host_snapshotter *snapshotter,
                                                 const char *snapshot);

#endif
