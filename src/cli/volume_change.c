/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume expand, modify and delete. */
#include <stdio.h>

#include "base/size_text.h"
#include "cli/volume.h"
#include "message/message_map.h"

/* ---- expand ---- */

/* The file system grows where it is mounted; one that is not mounted grows when it is staged. */
static struct error *
expand_on_node(struct client *client, const volume_info *volume, Csi__V1__CapacityRange *range)
{
    Csi__V1__NodeExpandVolumeRequest request = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;
    Csi__V1__NodeExpandVolumeResponse *reply;
    if (!volume->n_uses)
        return NULL;
    request.volume_id = volume->volume->volume_id;
    request.volume_path = volume->uses[0]->path;
    request.capacity_range = range;
    return client_ask(client, "csi.v1.Node/NodeExpandVolume", &request, &reply);
}

static struct error *
expand(struct client *client)
{
    Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
    Csi__V1__ControllerExpandVolumeRequest request =
        CSI__V1__CONTROLLER_EXPAND_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerExpandVolumeResponse *reply;
    volume_info *volume;
    struct error *error = size_text_parse(client->words[1], &range.required_bytes);
    if (!error)
        error = inventory_find_volume(client, client->words[0], &volume);
    if (error)
        return error;
    request.volume_id = volume->volume->volume_id;
    request.capacity_range = &range;
    error = client_ask(client, "csi.v1.Controller/ControllerExpandVolume", &request, &reply);
    if (!error && reply->node_expansion_required)
        error = expand_on_node(client, volume, &range);
    return error ? error : inventory_show_volume(client, request.volume_id);
}

const struct command volume_expand_command = {
    .name = "expand",
    .summary = "expand a volume, which may be in use",
    .words = "VOLUME SIZE",
    .help = "Expands a volume, and the file system in it, to at least SIZE, such as 20Gi. It may "
            "be in use.",
    .run = expand,
};

/* ---- modify ---- */

static struct error *
modify(struct client *client)
{
    Csi__V1__ControllerModifyVolumeRequest request =
        CSI__V1__CONTROLLER_MODIFY_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerModifyVolumeResponse *reply;
    struct text_map parameters = {0};
    volume_info *volume;
    struct error *error = NULL;
    for (int i = 1; i < client->word_count && !error; i++)
        error = volume_read_pair(client->words[i], "parameter", &client->arena, &parameters);
    if (!error)
        error = inventory_find_volume(client, client->words[0], &volume);
    if (error)
        return error;
    request.volume_id = volume->volume->volume_id;
    message_map_write(
        &parameters, &client->arena,
        &csi__v1__controller_modify_volume_request__mutable_parameters_entry__descriptor,
        &request.mutable_parameters, &request.n_mutable_parameters);
    error = client_ask(client, "csi.v1.Controller/ControllerModifyVolume", &request, &reply);
    return error ? error : inventory_show_volume(client, request.volume_id);
}

const struct command volume_modify_command = {
    .name = "modify",
    .summary = "change a volume's parameters",
    .words = "VOLUME KEY=VALUE...",
    .help = "Changes parameters of a volume, all that are given or none: compression, label, "
            "mobility, and I/O limits\nlike read-bytes-per-second.",
    .run = modify,
};

/* ---- delete ---- */

static struct error *
delete_one(struct client *client, const char *text)
{
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse *reply;
    volume_info *volume;
    struct error *error = inventory_find_volume(client, text, &volume);
    if (error)
        return error;
    request.volume_id = volume->volume->volume_id;
    error = client_ask(client, "csi.v1.Controller/DeleteVolume", &request, &reply);
    if (!error && client->as_json)
        client_print_json(reply, 0);
    return error;
}

static struct error *
delete_volumes(struct client *client)
{
    struct error *error = NULL;
    for (int i = 0; i < client->word_count && !error; i++)
        error = delete_one(client, client->words[i]);
    return error;
}

const struct command volume_delete_command = {
    .name = "delete",
    .summary = "delete volumes and their data",
    .words = "VOLUME...",
    .help = "Deletes volumes with all that is in them, one after the other. One that is published "
            "is not deleted;\nsnapshots and clones of it stay.",
    .run = delete_volumes,
};
