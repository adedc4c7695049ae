/* SPDX-License-Identifier: Apache-2.0 */
/* skycap velero host restore and delete. */
#include <stdio.h>
#include <string.h>

#include "cli/velero_host.h"
#include "message/json_value.h"

static const char *volume_file;
static const char *volume_type;
static const char *zone;
static unsigned long iops;

static const struct option restore_flags[] = {
    {"pv", 0, "PV.json", OPTION_TEXT, &volume_file,
     "the PersistentVolume, if SNAPSHOT is only an id; -: standard input"},
    {"type", 0, "TYPE", OPTION_TEXT, &volume_type,
     "the type of the volume, if SNAPSHOT is only an id"},
    {"zone", 0, "ZONE", OPTION_TEXT, &zone, "the zone of the volume; default: as it was"},
    {"iops", 0, "NUMBER", OPTION_NUMBER, &iops,
     "I/O operations per second of the volume; default: as they were"},
    {0},
};

/* ---- restore ---- */

static struct error *
read_snapshot(struct client *client, Skycap__V1__HostSnapshot **out)
{
    const char *volume = "";
    struct error *error = velero_host_read_snapshot(client->words[0], &client->arena, out);
    if (error)
        return error;
    if (volume_type)
        (*out)->volume_type = (char *)volume_type;
    if (zone)
        (*out)->volume_zone = (char *)zone;
    if (iops)
        (*out)->volume_iops = (int64_t)iops;
    if (volume_file)
        error = velero_host_read_file(volume_file, &client->arena, &volume);
    if (!error && volume_file)
        (*out)->persistent_volume = (char *)volume;
    return error;
}

/* A PersistentVolume without its kind would be accepted by nobody. */
static struct error *
check_volume(const struct velero_host *host, const char *text)
{
    struct json_value *object = NULL;
    struct error *error = json_value_parse(text, strlen(text), &object);
    if (!error && (!json_value_text(json_value_member(object, "kind")) ||
                   !json_value_text(json_value_member(object, "apiVersion"))))
        error = error_new(CODE_INTERNAL, "it has no kind or no apiVersion");
    json_value_free(object);
    return error_wrap(error, "the plugin %s answered with a PersistentVolume that is none",
                      host->plugin->name);
}

static struct error *
restore_volume(struct velero_host *host, const Skycap__V1__HostSnapshot *snapshot)
{
    struct arena *arena = &host->client->arena;
    struct host_volume volume = {.type = snapshot->volume_type,
                                 .zone = snapshot->volume_zone,
                                 .iops = snapshot->volume_iops};
    const char *changed = "";
    struct error *error =
        host_snapshotter_create_volume(host->snapshotter, snapshot->snapshot_id, &volume, arena);
    if (error)
        return error;
    fprintf(stderr, "skycap: made the volume %s\n", volume.id);
    if (!snapshot->persistent_volume[0])
        return NULL;
    error = host_snapshotter_set_volume_id(host->snapshotter, snapshot->persistent_volume,
                                           volume.id, arena, &changed);
    if (!error)
        error = check_volume(host, changed);
    if (!error)
        puts(changed);
    return error_wrap(error, "the volume %s was made, but not the PersistentVolume", volume.id);
}

static const char *
plugin_of(const Skycap__V1__HostSnapshot *snapshot)
{
    return snapshot->plugin[0] ? snapshot->plugin : NULL;
}

static struct error *
restore(struct client *client)
{
    struct velero_host host AUTO(velero_host_close) = {0};
    Skycap__V1__HostSnapshot *snapshot;
    struct error *error = read_snapshot(client, &snapshot);
    if (!error)
        error = velero_host_open(&host, client);
    if (!error)
        error = velero_host_start(&host, plugin_of(snapshot));
    return error ? error : restore_volume(&host, snapshot);
}

const struct command velero_host_restore_command = {
    .name = "restore",
    .summary = "make a volume from a snapshot, and its PersistentVolume",
    .words = "SNAPSHOT",
    .help = "Makes a volume from a snapshot and prints the PersistentVolume for it, as JSON. The "
            "volume's id goes to\nstandard error. With an id as SNAPSHOT and without --pv, only "
            "the volume is made.",
    .flags = restore_flags,
    .more_flags = COMMAND_NO_FLAGS,
    .run = restore,
};

/* ---- delete ---- */

static struct error *
delete_all(struct velero_host *host, Skycap__V1__HostSnapshot *const *snapshots, size_t count)
{
    struct error *error = NULL;
    for (size_t i = 0; i < count && !error; i++)
        error = host_snapshotter_delete(host->snapshotter, snapshots[i]->snapshot_id);
    return error;
}

static struct error *
check_plugins(Skycap__V1__HostSnapshot *const *snapshots, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (strcmp(snapshots[i]->plugin, snapshots[0]->plugin) != 0)
            return error_new(CODE_INVALID_ARGUMENT,
                             "the snapshots are of different plugins: delete them one by one");
    return NULL;
}

static struct error *
run_delete(struct client *client)
{
    struct velero_host host AUTO(velero_host_close) = {0};
    size_t count = (size_t)client->word_count;
    Skycap__V1__HostSnapshot **snapshots = arena_alloc(&client->arena, count * sizeof *snapshots);
    struct error *error = NULL;
    for (size_t i = 0; i < count && !error; i++)
        error = velero_host_read_snapshot(client->words[i], &client->arena, &snapshots[i]);
    if (!error)
        error = check_plugins(snapshots, count);
    if (!error)
        error = velero_host_open(&host, client);
    if (!error)
        error = velero_host_start(&host, plugin_of(snapshots[0]));
    return error ? error : delete_all(&host, snapshots, count);
}

const struct command velero_host_delete_command = {
    .name = "delete",
    .summary = "delete snapshots",
    .words = "SNAPSHOT...",
    .help = "Deletes snapshots, one after the other. What the plugin does not have counts as "
            "deleted, if the plugin\nsays so.",
    .more_flags = COMMAND_NO_FLAGS,
    .run = run_delete,
};
