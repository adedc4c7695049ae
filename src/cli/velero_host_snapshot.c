/* SPDX-License-Identifier: Apache-2.0 */
/* skycap velero host snapshot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/inventory.h"
#include "cli/table.h"
#include "cli/velero_host_wait.h"
#include "cli/volume.h"
#include "message/json_value.h"
#include "message/message_json.h"
#include "message/message_time.h"
#include "velero/velero.h"

#define MAX_NAME_BYTES 253

static const char *zone;
static const char *backup;
static struct text_list tag_pairs;
static bool does_not_wait;

static const struct option snapshot_flags[] = {
    {"backup", 0, "NAME", OPTION_TEXT, &backup,
     "the name of the backup that the snapshot is for; default: one made from the time"},
    {"tag", 0, "KEY=VALUE", OPTION_LIST, &tag_pairs,
     "a tag for the snapshot; may be given several times"},
    {"zone", 0, "ZONE", OPTION_TEXT, &zone,
     "the zone of the volume; default: that of the volume's labels"},
    {"no-wait", 0, NULL, OPTION_FLAG, &does_not_wait, "do not wait until the snapshot is complete"},
    {0},
};

/* ---- the PersistentVolume ---- */

/* As Velero finds it; a volume without these labels has no zone. */
static const char *
zone_of(const struct json_value *metadata, struct arena *arena)
{
    static const char *const labels[] = {"topology.kubernetes.io/zone",
                                         "failure-domain.beta.kubernetes.io/zone"};
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        const char *found =
            json_value_text(json_value_member(json_value_member(metadata, "labels"), labels[i]));
        if (found)
            return arena_string(arena, found);
    }
    return "";
}

static struct error *
read_object(const struct json_value *object, Skycap__V1__HostSnapshot *out, struct arena *arena)
{
    const char *kind = json_value_text(json_value_member(object, "kind"));
    const struct json_value *metadata = json_value_member(object, "metadata");
    const char *name = json_value_text(json_value_member(metadata, "name"));
    if (!kind || strcmp(kind, "PersistentVolume") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "its kind is not PersistentVolume");
    if (!name || !name[0] || strlen(name) > MAX_NAME_BYTES)
        return error_new(CODE_INVALID_ARGUMENT, "it has no valid metadata.name");
    out->persistent_volume_name = arena_string(arena, name);
    out->volume_zone = (char *)(zone ? zone : zone_of(metadata, arena));
    return NULL;
}

static struct error *
read_volume(const char *path, Skycap__V1__HostSnapshot *out, struct arena *arena)
{
    struct json_value *object = NULL;
    const char *text = "";
    struct error *error = velero_host_read_file(path, arena, &text);
    if (!error)
        error = json_value_parse(text, strlen(text), &object);
    if (!error)
        error = read_object(object, out, arena);
    json_value_free(object);
    out->persistent_volume = error ? NULL : (char *)text;
    return error_wrap(error, "read the PersistentVolume %s", path);
}

/* ---- taking it ---- */

static char *
backup_name(struct arena *arena)
{
    char text[32];
    time_t now = (time_t)(clock_unix_ms() / 1000);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "skycap-%Y%m%d-%H%M%S", &parts);
    return arena_string(arena, text);
}

static struct error *
read_tags(const Skycap__V1__HostSnapshot *snapshot, struct arena *arena, struct text_map *out)
{
    struct error *error = NULL;
    for (size_t i = 0; i < tag_pairs.count && !error; i++)
        error = volume_read_pair(tag_pairs.items[i], "--tag", arena, out);
    text_map_set(out, arena, VELERO_TAG_BACKUP, snapshot->backup);
    text_map_set(out, arena, VELERO_TAG_VOLUME, snapshot->persistent_volume_name);
    return error;
}

/* The calls of a backup of Velero, in its order. */
static struct error *
take(struct velero_host *host, Skycap__V1__HostSnapshot *out)
{
    struct arena *arena = &host->client->arena;
    struct host_volume volume = {.zone = out->volume_zone};
    struct text_map tags = {0};
    const char *snapshot = "";
    struct error *error = read_tags(out, arena, &tags);
    if (!error)
        error = host_snapshotter_get_volume_id(host->snapshotter, out->persistent_volume, arena,
                                               &volume.id);
    if (!error && !volume.id[0])
        error = error_new(CODE_FAILED_PRECONDITION,
                          "the plugin %s has no volume for the PersistentVolume %s",
                          host->plugin->name, out->persistent_volume_name);
    if (!error)
        error = host_snapshotter_get_volume_info(host->snapshotter, &volume, arena);
    if (!error && velero_host_is_interrupted())
        error = error_new(CODE_CANCELLED, "interrupted before the snapshot was begun");
    if (!error)
        error = host_snapshotter_create(host->snapshotter, &volume, &tags, arena, &snapshot);
    if (error)
        return error;
    out->snapshot_id = (char *)snapshot;
    out->volume_id = (char *)volume.id;
    out->volume_type = (char *)volume.type;
    out->volume_iops = volume.iops;
    return NULL;
}

static void
print(const Skycap__V1__HostSnapshot *snapshot, struct client *client)
{
    if (client->as_json) {
        client_print_json(snapshot, MESSAGE_JSON_PRETTY);
        return;
    }
    table_print_fact("snapshot", snapshot->snapshot_id);
    table_print_fact("of", arena_print(&client->arena, "%s (%s)", snapshot->persistent_volume_name,
                                       snapshot->volume_id));
    table_print_fact("plugin", snapshot->plugin);
    table_print_fact("backup", snapshot->backup);
    table_print_fact("taken", inventory_time_text(snapshot->taken, &client->arena));
    table_print_fact("state", snapshot->complete ? "complete" : "not complete");
}

static struct error *
take_and_wait(struct velero_host *host, bool is_named, Skycap__V1__HostSnapshot *out)
{
    struct arena *arena = &host->client->arena;
    struct error *error = take(host, out);
    if (error)
        return error;
    out->plugin = (char *)host->plugin->name;
    out->taken = message_time_new(clock_unix_ns(), arena);
    const char *what =
        arena_print(arena, "%s through %s", out->persistent_volume_name, host->plugin->name);
    if (!does_not_wait)
        error = velero_host_wait(host, out->snapshot_id, what, is_named);
    out->complete = !does_not_wait && !error;
    /* Also if the waiting has ended: the id must not be lost. */
    if (!error || error->code == CODE_DEADLINE_EXCEEDED)
        print(out, host->client);
    return error;
}

static struct error *
run_snapshot(struct client *client)
{
    const char *endpoint = getenv("CSI_ENDPOINT");
    bool is_named = client->flags.endpoint || (endpoint && endpoint[0]);
    struct velero_host host AUTO(velero_host_close) = {0};
    Skycap__V1__HostSnapshot snapshot = SKYCAP__V1__HOST_SNAPSHOT__INIT;
    struct error *error = read_volume(client->words[0], &snapshot, &client->arena);
    snapshot.backup = backup ? (char *)backup : backup_name(&client->arena);
    velero_host_note_signals();
    if (!error)
        error = velero_host_open(&host, client);
    if (!error)
        error = velero_host_start(&host, NULL);
    return error ? error : take_and_wait(&host, is_named, &snapshot);
}

const struct command velero_host_snapshot_command = {
    .name = "snapshot",
    .summary = "take a snapshot of a PersistentVolume",
    .words = "PV.json",
    .help = "Takes a snapshot of the PersistentVolume in the file (-: standard input), waits until "
            "it is complete, and\nprints it; restore takes the JSON output. While it waits, "
            "the snapshot is an operation of the server\nat --endpoint, if there is one: `skycap "
            "op cancel` with its id, or Ctrl-C, cancels it.",
    .flags = snapshot_flags,
    .run = run_snapshot,
};
