/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the services of the plugin; no other file includes it. */
#ifndef VELERO_PLUGIN_INTERNAL_H
#define VELERO_PLUGIN_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log.h"
#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "proto/velero_v2.rpc.h"
#include "rpc/server/server.h"
#include "velero/plugin_error.h"
#include "velero/plugin_link.h"

/* The name of the plugin, for all its kinds; a location's `provider`. */
#define PLUGIN_NAME "skycap.dev/velero"

struct plugin {
    const struct log *log;
    struct runtime *runtime;
    const char *command;   /* what the host starts */
    bool lists_v2;         /* the host knows the kind VolumeSnapshotterV2 */
    bool has_csi;          /* Velero itself makes snapshots of CSI volumes */
    pthread_mutex_t lock;  /* of the links */
    struct link *location; /* as Init said; NULL before it */
    struct link *actions;  /* as the environment says; NULL until it is needed */
};

/* Velero puts it into the log of the backup. It counts warnings and errors as the backup's. */
static inline const struct log *
plugin_log(const struct call *call)
{
    return ((const struct plugin *)call_context(call))->log;
}

extern const struct generated_plugin_lister plugin_lister_handlers;
extern const struct plugin_grpccontroller plugin_controller_handlers;
extern const struct generated_volume_snapshotter plugin_snapshotter_handlers;
extern const struct v2_volume_snapshotter plugin_snapshotter_v2_handlers;
extern const struct v2_backup_item_action plugin_backup_handlers;
extern const struct v2_restore_item_action plugin_restore_handlers;
extern const struct generated_delete_item_action plugin_delete_handlers;

/* UNKNOWN: the host means another plugin. */
MUST_CHECK struct error *plugin_check_name(const char *name);

/* The link of the location, or that of the environment before Init. The caller releases it. */
MUST_CHECK struct error *plugin_hold_location(struct plugin *plugin, struct link **out);
/* The link of the environment: actions have no Init. The caller releases it. */
MUST_CHECK struct error *plugin_hold_actions(struct plugin *plugin, struct link **out);
/* From now on calls use these settings. */
MUST_CHECK struct error *plugin_set_location(struct plugin *plugin,
                                             const struct plugin_settings *settings);

/* AppliesTo of all actions: PersistentVolumes. */
MUST_CHECK struct error *plugin_apply_to_volumes(struct call *call, const char *name,
                                                 Generated__AppliesToResponse *reply);

#endif
