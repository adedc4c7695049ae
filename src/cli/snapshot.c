/* SPDX-License-Identifier: Apache-2.0 */
/* skycap snapshot: taking, showing, restoring and deleting them. */
#include "cli/snapshot.h"

#include <string.h>
#include <time.h>

#include "cli/progress.h"
#include "cli/table.h"
#include "message/message_json.h"

#define AGAIN_MS 300

/* ---- create ---- */

/* That of a third-party driver has no operation: it is looked at again and again. */
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

static struct error *
create(struct client *client, const char *source, const char *name)
{
    Csi__V1__CreateSnapshotRequest request = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateSnapshotResponse *reply;
    volume_info *volume;
    struct error *error = inventory_find_volume(client, source, &volume);
    if (error)
        return error;
    request.source_volume_id = volume->volume->volume_id;
    request.name = (char *)name;
    error = progress_ask(client, "csi.v1.Controller/CreateSnapshot", &request,
                         progress_find_snapshot, name, &reply);
    if (!error && !reply->snapshot->ready_to_use)
        error = wait_until_ready(client, reply->snapshot->snapshot_id);
    return error ? error : inventory_show_snapshot(client, reply->snapshot->snapshot_id);
}

static VERB(run_create)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {"skycap snapshot create VOLUME NAME [options]",
                                       "Takes the snapshot NAME of a volume, which may be in use. "
                                       "Repeating the command returns the same\nsnapshot.",
                                       NULL,
                                       0,
                                       2,
                                       2};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    return create(&client, client.words[0], client.words[1]);
}

/* ---- list ---- */

/* Page by page, as one reply. */
static struct error *
list_all(struct client *client, const char *of_volume, Skycap__V1__ListSnapshotsResponse *all)
{
    Skycap__V1__ListSnapshotsRequest request = SKYCAP__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Skycap__V1__ListSnapshotsResponse *page;
    request.of_volume = (char *)of_volume;
    do {
        struct error *error =
            client_ask(client, "skycap.v1.Inventory/ListSnapshots", &request, &page);
        if (error)
            return error;
        all->snapshots = client_join(client, all->snapshots, all->n_snapshots, page->snapshots,
                                     page->n_snapshots);
        all->n_snapshots += page->n_snapshots;
        request.starting_token = page->next_token;
    } while (request.starting_token[0]);
    return NULL;
}

static VERB(run_list)
{
    struct client client AUTO(client_close) = {0};
    const char *of_volume = "";
    const struct option own[] = {
        {"of", 0, "VOLUME", OPTION_TEXT, &of_volume, "only snapshots of this volume"},
    };
    const struct client_usage usage = {"skycap snapshot list [options]",
                                       "Lists snapshots, the oldest first.",
                                       own,
                                       COUNT_OF(own),
                                       0,
                                       0};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    Skycap__V1__ListSnapshotsResponse all = SKYCAP__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    error = list_all(&client, of_volume, &all);
    if (!error && client.as_json)
        client_print_json(&all, MESSAGE_JSON_PRETTY);
    else if (!error)
        inventory_print_snapshots(all.snapshots, all.n_snapshots, &client.arena);
    return error;
}

/* ---- show ---- */

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
    table_print_fact("group", snapshot->group_snapshot_id);
    for (size_t i = 0; i < info->n_parameters; i++)
        table_print_fact("parameter", arena_print(arena, "%s=%s", info->parameters[i]->key,
                                                  info->parameters[i]->value));
    if (strcmp(info->consistency, "files") == 0)
        table_print_fact("consistency", "each file as it was at a moment of its own");
    table_print_fact("state", snapshot->ready_to_use ? "ready" : "its data is being copied");
}

static VERB(run_show)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap snapshot show SNAPSHOT [options]", "Shows details of a snapshot.", NULL, 0, 1, 1};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    snapshot_info *snapshot;
    error = inventory_find_snapshot(&client, client.words[0], &snapshot);
    if (!error && client.as_json)
        client_print_json(snapshot, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_snapshot(snapshot, &client.arena);
    return error;
}

/* ---- restore ---- */

static struct error *
restore(struct client *client, struct volume_wish *wish, int count, char **arguments,
        enum exit_code *exit_code)
{
    const struct option own[] = {
        VOLUME_SIZE_FLAG(wish),
        VOLUME_PARAMETER_FLAG(wish),
        VOLUME_CONNECTION_FLAG(wish),
        VOLUME_PUBLISH_FLAG(wish),
    };
    const struct client_usage usage = {"skycap snapshot restore SNAPSHOT NAME [options]",
                                       "Creates the volume NAME with the content of a snapshot.",
                                       own,
                                       COUNT_OF(own),
                                       2,
                                       2};
    struct error *error = client_open(client, &usage, count, arguments, exit_code);
    if (error || client->has_helped)
        return error;
    wish->from_snapshot = client->words[0];
    wish->name = client->words[1];
    return volume_make(client, wish);
}

static VERB(run_restore)
{
    struct client client AUTO(client_close) = {0};
    struct volume_wish wish = {0};
    struct error *error = restore(&client, &wish, count, arguments, exit_code);
    options_free_list(&wish.parameters);
    return error;
}

/* ---- delete ---- */

static struct error *
delete_snapshot(struct client *client, const char *text)
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

static VERB(run_delete)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap snapshot delete SNAPSHOT... [options]",
        "Deletes snapshots, one after the other; volumes that were made from them stay.",
        NULL,
        0,
        1,
        CLIENT_ANY_NUMBER};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    for (int i = 0; i < client.word_count && !error; i++)
        error = delete_snapshot(&client, client.words[i]);
    return error;
}

/* ---- all of them ---- */

static const struct command table[] = {
    {"create", "take a snapshot of a volume", run_create},
    {"list", "list all snapshots, oldest first", run_list},
    {"show", "show one snapshot", run_show},
    {"restore", "create a volume with the content of a snapshot", run_restore},
    {"delete", "delete snapshots", run_delete},
    {"diff", "list blocks that hold data, or that differ from an older snapshot",
     snapshot_run_diff},
};

static VERB(run)
{
    static const struct verbs verbs = {
        "snapshot",
        "Works with the snapshots of a server. SNAPSHOT and VOLUME are ids, or the names that they "
        "were created with.",
        table, COUNT_OF(table)};
    return verbs_run(&verbs, count, arguments, exit_code);
}

const struct command snapshot_command = {"snapshot", "take, restore, compare and delete snapshots",
                                         run};
