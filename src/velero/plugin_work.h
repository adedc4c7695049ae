/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plugin does with skycap, for a snapshotter as well as for actions. Every function keeps
 * to the time limit of the link's settings. What goes on after a call is an operation of skycap's,
 * whose id is that of the snapshot or volume that it makes: any process can ask about it.
 */
#ifndef VELERO_PLUGIN_WORK_H
#define VELERO_PLUGIN_WORK_H

#include "proto/inventory.pb-c.h"
#include "proto/velero_v1.pb-c.h"
#include "velero/persistent_volume.h"
#include "velero/plugin_link.h"

struct work_snapshot {
    const char *volume_id;
    const char *backup; /* its name */
    const char *volume; /* the PersistentVolume's name */
    int64_t not_before; /* Unix time: an older snapshot belongs to an earlier backup */
};

/*
 * The same backup and volume give the same snapshot, so a repeated request does no harm. `*id` is
 * its id and that of the operation; the data may still be on the way. ALREADY_EXISTS: the name was
 * used before by another backup, whose snapshot must not be mistaken for this one's.
 */
MUST_CHECK struct error *work_create_snapshot(struct link *link, struct call *call,
                                              const struct work_snapshot *wanted, const char **id);

/* An empty or unknown id counts as deleted. */
MUST_CHECK struct error *work_delete_snapshot(struct link *link, struct call *call, const char *id);

MUST_CHECK struct error *work_find_volume(struct link *link, struct call *call, const char *id,
                                          Skycap__V1__VolumeInfo **out);

/*
 * The same name gives the same volume. `type` is that of GetVolumeInfo, for a driver that tells no
 * type of the snapshot. `*id` is also that of the operation; the data may still be on the way.
 */
MUST_CHECK struct error *work_create_volume(struct link *link, struct call *call, const char *name,
                                            const char *snapshot_id, const char *type,
                                            const char **id);

/* Makes the object point to the volume, and to the nodes where the volume is accessible. */
MUST_CHECK struct error *work_set_volume(struct link *link, struct call *call, const char *id,
                                         struct persistent_volume *object);

/* A name with the beginning of the first text and a hash of all of them; NULL ends them. */
char *work_make_name(struct arena *arena, const char *const *texts);

/* ---- operations ---- */

/*
 * How far the operation is. There is always an answer: Velero takes an error for the end of the
 * operation, so trouble that may pass is an operation that goes on.
 */
Generated__OperationProgress *work_progress(struct link *link, struct call *call, const char *id);

/* What has ended stays as it ended, which is success. */
MUST_CHECK struct error *work_cancel(struct link *link, struct call *call, const char *id);

#endif
