/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume list and show. */
#include <inttypes.h>
#include <string.h>

#include "base/size_text.h"
#include "cli/table.h"
#include "cli/volume.h"
#include "message/message_json.h"

/* ---- list ---- */

static struct error *
list(struct client *client)
{
    Skycap__V1__ListVolumesRequest request = SKYCAP__V1__LIST_VOLUMES_REQUEST__INIT;
    Skycap__V1__ListVolumesResponse *all;
    struct error *error =
        client_ask_pages(client, "skycap.v1.Inventory/ListVolumes", &request, &all);
    if (!error && client->as_json)
        client_print_json(all, MESSAGE_JSON_PRETTY);
    else if (!error)
        inventory_print_volumes(all->volumes, all->n_volumes, &client->arena);
    client_warn_of_missing(client);
    return error;
}

const struct command volume_list_command = {
    .name = "list",
    .summary = "list all volumes, oldest first",
    .help = "Lists all volumes, the oldest first.",
    .run = list,
};

/* ---- show ---- */

static void
print_source(const volume_info *volume, struct arena *arena)
{
    const Csi__V1__VolumeContentSource *source = volume->volume->content_source;
    if (!source)
        return;
    bool is_volume = source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
    table_print_fact(
        "from", arena_print(arena, "%s %s (%s)", is_volume ? "volume" : "snapshot",
                            volume->source_name[0] ? volume->source_name : "gone",
                            is_volume ? source->volume->volume_id : source->snapshot->snapshot_id));
}

/* Only the node where it is published knows how full it is. */
static struct error *
print_usage(struct client *client, const volume_info *volume, const char *path)
{
    Csi__V1__NodeGetVolumeStatsRequest request = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;
    Csi__V1__NodeGetVolumeStatsResponse *reply;
    request.volume_id = volume->volume->volume_id;
    request.volume_path = (char *)path;
    struct error *error = client_ask(client, "csi.v1.Node/NodeGetVolumeStats", &request, &reply);
    if (error && (error->code == CODE_NOT_FOUND || error->code == CODE_UNAVAILABLE)) {
        error_free(error); /* it is published on another node */
        return NULL;
    }
    if (error)
        return error;
    for (size_t i = 0; i < reply->n_usage; i++) {
        const Csi__V1__VolumeUsage *usage = reply->usage[i];
        char used[32], total[32];
        size_text_print(usage->used, used, sizeof used);
        size_text_print(usage->total, total, sizeof total);
        if (usage->unit == CSI__V1__VOLUME_USAGE__UNIT__INODES)
            table_print_fact("inodes", arena_print(&client->arena, "%" PRId64, usage->used));
        else if (usage->used)
            table_print_fact("used", arena_print(&client->arena, "%s of %s", used, total));
    }
    return NULL;
}

/* Returns the last of the paths; NULL if there is none. */
static const char *
print_uses(const volume_info *volume, bool staging, struct arena *arena)
{
    const char *path = NULL;
    for (size_t i = 0; i < volume->n_uses; i++) {
        const Skycap__V1__VolumeUse *use = volume->uses[i];
        if (use->staging != staging)
            continue;
        path = use->path;
        table_print_fact(staging ? "staged at" : "at",
                         arena_print(arena, "%s%s", path, use->read_only ? " (read only)" : ""));
    }
    return path;
}

static void
print_state(const volume_info *volume, struct arena *arena)
{
    const char *state = volume->condition ? volume->condition->message : "";
    if (volume->moving_to[0])
        state = arena_print(arena, "it is moving to node %s", volume->moving_to);
    else if (!volume->ready)
        state = "its data is being copied";
    table_print_fact("state", state);
    if (volume->unavailable_ms)
        table_print_fact("last move", arena_print(arena, "it was unavailable for %" PRIu64 " ms",
                                                  volume->unavailable_ms));
}

static struct error *
print_volume(struct client *client, const volume_info *volume)
{
    struct arena *arena = &client->arena;
    table_print_fact("name", volume->name);
    table_print_fact("id", volume->volume->volume_id);
    table_print_fact("size", inventory_size_text(volume->volume->capacity_bytes, arena));
    table_print_fact("type", volume->type);
    table_print_fact("created", inventory_time_text(volume->created, arena));
    print_source(volume, arena);
    for (size_t i = 0; i < volume->n_parameters; i++)
        table_print_fact("parameter", arena_print(arena, "%s=%s", volume->parameters[i]->key,
                                                  volume->parameters[i]->value));
    table_print_fact("node", volume->node_id);
    print_state(volume, arena);
    for (size_t i = 0; i < volume->n_node_ids; i++)
        table_print_fact("attached to", volume->node_ids[i]);
    print_uses(volume, true, arena);
    const char *path = print_uses(volume, false, arena);
    return path ? print_usage(client, volume, path) : NULL;
}

static struct error *
show(struct client *client)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, client->words[0], &volume);
    if (error)
        return error;
    if (!client->as_json)
        return print_volume(client, volume);
    client_print_json(volume, MESSAGE_JSON_PRETTY);
    return NULL;
}

const struct command volume_show_command = {
    .name = "show",
    .summary = "show one volume",
    .words = "VOLUME",
    .help = "Shows details of a volume.",
    .run = show,
};
