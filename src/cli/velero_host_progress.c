/* SPDX-License-Identifier: Apache-2.0 */
/* skycap velero host progress and cancel. */
#include "cli/inventory.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/velero_host_wait.h"
#include "message/message_json.h"

static bool waits;

static const struct option progress_flags[] = {
    {"wait", 0, NULL, OPTION_FLAG, &waits, "wait until the snapshot is complete"},
    {0},
};

/* ---- showing ---- */

static void
print_json(const Skycap__V1__Operation *operation, const Generated__OperationProgress *progress)
{
    Skycap__V1__HostProgress message = SKYCAP__V1__HOST_PROGRESS__INIT;
    message.snapshot_id = operation->id;
    message.complete = progress->completed;
    message.error = progress->err;
    message.done = operation->done;
    message.total = operation->total;
    message.units = operation->units;
    message.description = operation->description;
    message.started = operation->started;
    message.updated = operation->updated;
    client_print_json(&message, MESSAGE_JSON_PRETTY);
}

static void
print_text(const Skycap__V1__Operation *operation, const Generated__OperationProgress *progress,
           struct arena *arena)
{
    table_print_fact("snapshot", operation->id);
    table_print_fact("state", !progress->completed ? "in progress"
                              : progress->err[0]   ? "not completed"
                                                   : "complete");
    table_print_fact("error", progress->err);
    table_print_fact("done", progress_percent(operation, arena));
    if (operation->total)
        table_print_fact("amount", progress_amount(operation, arena));
    table_print_fact("what", operation->description);
    if (operation->started)
        table_print_fact("started", inventory_time_text(operation->started, arena));
    if (operation->updated)
        table_print_fact("updated", inventory_time_text(operation->updated, arena));
}

static struct error *
show(struct velero_host *host, const char *snapshot)
{
    struct client *client = host->client;
    Generated__OperationProgress *progress;
    struct error *error =
        host_snapshotter_progress(host->snapshotter, snapshot, &client->arena, &progress);
    if (error)
        return error;
    Skycap__V1__Operation *operation = velero_host_operation(snapshot, progress, &client->arena);
    if (client->as_json)
        print_json(operation, progress);
    else
        print_text(operation, progress, &client->arena);
    return NULL;
}

/* ---- the commands ---- */

static struct error *
open_for(struct velero_host *host, struct client *client, const char **id)
{
    Skycap__V1__HostSnapshot *snapshot;
    struct error *error = velero_host_read_snapshot(client->words[0], &client->arena, &snapshot);
    if (error)
        return error;
    *id = snapshot->snapshot_id;
    error = velero_host_open(host, client);
    return error ? error : velero_host_start(host, snapshot->plugin[0] ? snapshot->plugin : NULL);
}

static struct error *
run_progress(struct client *client)
{
    struct velero_host host AUTO(velero_host_close) = {0};
    const char *id = "";
    struct error *error = open_for(&host, client, &id);
    if (!error && waits) {
        velero_host_note_signals();
        error = velero_host_watch(&host, id);
    }
    return error ? error : show(&host, id);
}

const struct command velero_host_progress_command = {
    .name = "progress",
    .summary = "show how far a snapshot is",
    .words = "SNAPSHOT",
    .help = "Asks the plugin how far a snapshot is.",
    .flags = progress_flags,
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = run_progress,
};

static struct error *
run_cancel(struct client *client)
{
    struct velero_host host AUTO(velero_host_close) = {0};
    const char *id = "";
    struct error *error = open_for(&host, client, &id);
    if (!error)
        error = host_snapshotter_cancel(host.snapshotter, id);
    return error ? error : show(&host, id);
}

const struct command velero_host_cancel_command = {
    .name = "cancel",
    .summary = "request cancellation of a snapshot",
    .words = "SNAPSHOT",
    .help = "Asks the plugin to cancel a snapshot that is not complete, and shows how far it is. A "
            "plugin of version 1\naccepts it and does nothing: its snapshots are complete.",
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = run_cancel,
};
