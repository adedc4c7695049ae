/* SPDX-License-Identifier: Apache-2.0 */
/* skycap velero: Velero's plugins. */
#include "cli/velero_host.h"
#include "velero/plugin.h"

static struct error *
run_plugin(struct client *client)
{
    client->has_failed = plugin_run(1, (char *[]){(char *)"skycap"}) != 0;
    return NULL;
}

static const struct command plugin_command = {
    .name = "plugin",
    .summary = "serve as a plugin of Velero",
    .help = "Serves snapshots to Velero, which starts this program as its plugin. Started by "
            "hand, it explains\nitself and fails. The program skycap-velero does the same and is "
            "smaller.",
    .more_flags = COMMAND_NO_FLAGS,
    .run = run_plugin,
};

static const struct command host_command = {
    .name = "host",
    .summary = "list plugins, and take, restore and delete snapshots through them",
    .help = "Runs plugins of Velero: finds the programs in --plugin-dir, and takes, restores and "
            "deletes snapshots of\nPersistentVolumes through them. A volume snapshotter of "
            "version 1 is used as one of version 2: its\nsnapshots are complete at once, and "
            "cancelling them does nothing. SNAPSHOT is a snapshot's id, or @FILE\nwith the JSON "
            "output of snapshot.",
    .below =
        (const struct command *const[]){
            &velero_host_list_command,
            &velero_host_snapshot_command,
            &velero_host_restore_command,
            &velero_host_delete_command,
            &velero_host_progress_command,
            &velero_host_cancel_command,
            NULL,
        },
    .shared_flags = velero_host_flags,
};

const struct command velero_command = {
    .name = "velero",
    .summary = "back up volumes with Velero, or with its plugins alone",
    .help = "Works with Velero, which backs up Kubernetes clusters, and with its plugins.",
    .below = (const struct command *const[]){&plugin_command, &host_command, NULL},
    .asking = "",
};
