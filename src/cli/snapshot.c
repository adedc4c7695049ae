/* SPDX-License-Identifier: Apache-2.0 */
/* skycap snapshot. */
#include <string.h>
#include <time.h>

#include "cli/inventory.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "message/message_map.h"

#define AGAIN_MS 300

/* ---- create ---- */

/* A snapshot of a third-party driver has no operation: it is polled. */
static struct error *
wait_until_ready(struct client *client, const char *id)
{
    snapshot_info *snapshot;
    struct error *error = progress_follow(client, id);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    for (;;) {
        error = inventory_find_snapshot(client, id, &snapshot);
        if (error || snapshot->snapshot->ready_to_use)
            return error;
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
    }
}

static unsigned long replicas = 1;
static const char *export_to;

static const struct option create_flags[] = {
    {"replicas", 0, "N", OPTION_NUMBER, &replicas,
     "keep it on N nodes, this one included; default: 1"},
    {"export", 0, "REPOSITORY", OPTION_TEXT, &export_to,
     "also copy it to this repository, in the background"},
    {0},
};

static void
add_parameters(struct client *client, Csi__V1__CreateSnapshotRequest *request)
{
    struct text_map parameters = {0};
    if (replicas != 1)
        text_map_set(&parameters, &client->arena, "replicas",
                     arena_print(&client->arena, "%lu", replicas));
    if (export_to)
        text_map_set(&parameters, &client->arena, "export", export_to);
    message_map_write(&parameters, &client->arena,
                      &csi__v1__create_snapshot_request__parameters_entry__descriptor,
                      &request->parameters, &request->n_parameters);
}

static struct error *
create(struct client *client)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    volume_info *volume;
    struct error *error = inventory_find_volume(client, client->words[0], &volume);
    if (error)
        return error;
    request.source_volume_id = volume->volume->volume_id;
    request.name = client->words[1];
    add_parameters(client, &request);
    error = progress_ask(client, "csi.v1.Controller/CreateSnapshot", &request,
                         progress_find_snapshot, request.name, &reply);
    if (!error && !reply->snapshot->ready_to_use)
        error = wait_until_ready(client, reply->snapshot->snapshot_id);
    return error ? error : inventory_show_snapshot(client, reply->snapshot->snapshot_id);
}

static const struct command create_command = {
    .name = "create",
    .summary = "take a snapshot of a volume",
    .words = "VOLUME NAME",
    .help = "Takes the snapshot NAME of a volume, which may be in use. Repeating the command "
            "returns the same\nsnapshot.",
    .flags = create_flags,
    .run = create,
};

/* ---- list ---- */

static const char *of_volume = "";

static const struct option list_flags[] = {
    {"of", 0, "VOLUME", OPTION_TEXT, &of_volume, "only snapshots of this volume"},
    {0},
};

static struct error *
list(struct client *client)
{
    Skycap__V1__ListSnapshotsRequest request = SKYCAP__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Skycap__V1__ListSnapshotsResponse *all;
    request.of_volume = (char *)of_volume;
    struct error *error =
        client_ask_pages(client, "skycap.v1.Inventory/ListSnapshots", &request, &all);
    if (!error && client->as_json)
        client_print_json(all, MESSAGE_JSON_PRETTY);
    else if (!error)
        inventory_print_snapshots(all->snapshots, all->n_snapshots, &client->arena);
    client_warn_of_missing(client);
    return error;
}

static const struct command list_command = {
    .name = "list",
    .summary = "list all snapshots, oldest first",
    .help = "Lists snapshots, the oldest first.",
    .flags = list_flags,
    .run = list,
};

/* ---- show ---- */

static void
print_export(const Skycap__V1__SnapshotExportInfo *export, struct arena *arena)
{
    if (export->id[0])
        table_print_fact("exported",
                         arena_print(arena, "%s to %s as %.12s%s%s%s",
                                     inventory_time_text(export->exported, arena),
                                     export->repository, export->id,
                                     export->full_reason[0] ? " (read everything: " : "",
                                     export->full_reason, export->full_reason[0] ? ")" : ""));
    else if (export->error[0])
        table_print_fact("exported",
                         arena_print(arena, "not to %s: %s", export->repository, export->error));
    else
        table_print_fact("exported",
                         arena_print(arena, "to %s: %u%%, operation %s", export->repository,
                                     export->percent, export->operation));
}

static void
print_snapshot(const snapshot_info *info, struct arena *arena)
{
    const Csi__V1__Snapshot *snapshot = info->snapshot;
    table_print_fact("name", info->name);
    table_print_fact("id", snapshot->snapshot_id);
    table_print_fact("of", arena_print(arena, "%s (%s)",
                                       info->source_name[0] ? info->source_name : "gone",
                                       snapshot->source_volume_id));
    if (snapshot->size_bytes)
        table_print_fact("size", inventory_size_text(snapshot->size_bytes, arena));
    table_print_fact("type", info->type);
    table_print_fact("taken", inventory_time_text(snapshot->creation_time, arena));
    for (size_t i = 0; i < info->n_exports; i++)
        print_export(info->exports[i], arena);
    table_print_fact("group", snapshot->group_snapshot_id);
    for (size_t i = 0; i < info->n_parameters; i++)
        table_print_fact("parameter", arena_print(arena, "%s=%s", info->parameters[i]->key,
                                                  info->parameters[i]->value));
    table_print_fact("node", info->node_id);
    for (size_t i = 0; i < info->n_holders; i++)
        table_print_fact("copy", arena_print(arena, "on node %s (%s)", info->holders[i]->node_id,
                                             info->holders[i]->state));
    if (strcmp(info->consistency, "files") == 0)
        table_print_fact("consistency", "each file as it was at a moment of its own");
    table_print_fact("state", !snapshot->ready_to_use ? "its data is being copied"
                              : info->is_replica ? "ready, from a copy: its node does not answer"
                                                 : "ready");
}

static struct error *
show(struct client *client)
{
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, client->words[0], &snapshot);
    if (!error && client->as_json)
        client_print_json(snapshot, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_snapshot(snapshot, &client->arena);
    return error;
}

static const struct command show_command = {
    .name = "show",
    .summary = "show one snapshot",
    .words = "SNAPSHOT",
    .help = "Shows details of a snapshot.",
    .run = show,
};

/* ---- delete ---- */

static struct error *
delete_one(struct client *client, const char *text)
{
    Csi__V1__DeleteSnapshotRequest request = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__DeleteSnapshotResponse *reply;
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, text, &snapshot);
    if (error)
        return error;
    request.snapshot_id = snapshot->snapshot->snapshot_id;
    error = client_ask(client, "csi.v1.Controller/DeleteSnapshot", &request, &reply);
    if (!error && client->as_json)
        client_print_json(reply, 0);
    return error;
}

static struct error *
delete_snapshots(struct client *client)
{
    struct error *error = NULL;
    for (int i = 0; i < client->word_count && !error; i++)
        error = delete_one(client, client->words[i]);
    return error;
}

static const struct command delete_command = {
    .name = "delete",
    .summary = "delete snapshots",
    .words = "SNAPSHOT...",
    .help = "Deletes snapshots, one after the other; volumes that were made from them stay.",
    .run = delete_snapshots,
};

/* ---- all of them ---- */

const struct command snapshot_command = {
    .name = "snapshot",
    .summary = "take, restore, spread, compare and delete snapshots",
    .help = "Works with the snapshots of a server. SNAPSHOT and VOLUME are ids, or the names that "
            "they were created with.",
    .below =
        (const struct command *const[]){
            &create_command,
            &list_command,
            &show_command,
            &snapshot_restore_command,
            &snapshot_spread_command,
            &delete_command,
            &snapshot_diff_command,
            &snapshot_export_command,
            &snapshot_import_command,
            &snapshot_verify_command,
            &snapshot_prune_command,
            &snapshot_drill_command,
            NULL,
        },
};
