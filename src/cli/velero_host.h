/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of skycap velero host share. */
#ifndef CLI_VELERO_HOST_H
#define CLI_VELERO_HOST_H

#include "cli/client.h"
#include "proto/velero_host.pb-c.h"
#include "velero/host.h"
#include "velero/host_snapshotter.h"

/* A host with what it has found, and one snapshotter of it. */
struct velero_host {
    struct client *client;
    struct log log;
    struct host *host;
    struct text_map config;
    const struct host_plugin *plugin;
    struct host_snapshotter *snapshotter;
};

/* Finds and lists the plugins. After an error, too: velero_host_close. */
MUST_CHECK struct error *velero_host_open(struct velero_host *host, struct client *client);

/* Then starts the snapshotter. `name` is used unless --plugin names another; NULL: none. */
MUST_CHECK struct error *velero_host_start(struct velero_host *host, const char *name);

void velero_host_close(struct velero_host *host);

/*
 * From now on, the first signal to end is only noted, so that work can be cancelled; the second one
 * ends the process.
 */
void velero_host_note_signals(void);
bool velero_host_is_interrupted(void);

/* A file, or standard input for "-", as text in the arena. */
MUST_CHECK struct error *velero_host_read_file(const char *path, struct arena *arena,
                                               const char **out);

/* ---- snapshots as files ---- */

/* A snapshot as `snapshot -o json` prints it from "@FILE"; with only the id from anything else. */
MUST_CHECK struct error *velero_host_read_snapshot(const char *word, struct arena *arena,
                                                   Skycap__V1__HostSnapshot **out);

/* The flags of all of them. */
extern const struct option velero_host_flags[];

extern const struct command velero_host_list_command;
extern const struct command velero_host_snapshot_command;
extern const struct command velero_host_restore_command;
extern const struct command velero_host_delete_command;
extern const struct command velero_host_progress_command;
extern const struct command velero_host_cancel_command;

#endif
