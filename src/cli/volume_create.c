/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume create and clone, and skycap snapshot restore. */
#include <string.h>

#include "base/size_text.h"
#include "cli/progress.h"
#include "cli/volume.h"
#include "csi/ids.h"
#include "message/message_map.h"

#define CREATE_VOLUME "csi.v1.Controller/CreateVolume"

/* ---- flags ---- */

/* What the new volume is to be; NULL: not given. */
static struct {
    const char *name;
    const char *size;
    const char *fs_type;
    bool block;
    struct text_list parameters; /* KEY=VALUE */
    const char *from_volume;     /* id or name */
    const char *from_snapshot;   /* id or name */
    const char *path;            /* where to publish it */
    const char *connection;
    const char *node;
    const char *rate;
} wanted;

/* clang-format off */
#define COPY_FLAGS                                                                                 \
    {"size", 0, "SIZE", OPTION_TEXT, &wanted.size,                                                 \
     "size, such as 10Gi; default: that of the source, or 1Gi for images and no limit for "        \
     "directories"},                                                                               \
    {"parameter", 0, "KEY=VALUE", OPTION_LIST, &wanted.parameters,                                 \
     "one that `skycap parameters` lists; may be given several times"},                            \
    {"connection", 0, "NAME", OPTION_TEXT, &wanted.connection,                                     \
     "connection to create it in; default: that of the source, or chosen by the server"},          \
    {"node", 0, "NODE", OPTION_TEXT, &wanted.node,                                                 \
     "node of a cluster to create it on; default: that of the source, or the one with most room"}, \
    {"rate", 0, "SIZE", OPTION_TEXT, &wanted.rate, VOLUME_RATE_HELP},                               \
    {"publish", 0, "PATH", OPTION_TEXT, &wanted.path, "also publish it at PATH"}
/* clang-format on */

static const struct option copy_flags[] = {COPY_FLAGS, {0}};

static const struct option create_flags[] = {
    COPY_FLAGS,
    {"fs", 0, "TYPE", OPTION_TEXT, &wanted.fs_type,
     "ext4, xfs or btrfs in an image, or none: a directory; default none"},
    {"block", 0, NULL, OPTION_FLAG, &wanted.block, "a raw block device"},
    {"from-volume", 0, "VOLUME", OPTION_TEXT, &wanted.from_volume, "copy the content of this one"},
    {"from-snapshot", 0, "SNAPSHOT", OPTION_TEXT, &wanted.from_snapshot,
     "copy the content of this one"},
    {0},
};

struct error *
volume_read_pair(const char *text, const char *what, struct arena *arena, struct text_map *map)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return error_new(CODE_INVALID_ARGUMENT, "%s \"%s\": give it as KEY=VALUE", what, text);
    text_map_set(map, arena, arena_copy(arena, text, (size_t)(equals - text)), equals + 1);
    return NULL;
}

static struct error *
read_parameters(struct arena *arena, Csi__V1__CreateVolumeRequest *request)
{
    struct text_map map = {0};
    struct error *error = NULL;
    for (size_t i = 0; i < wanted.parameters.count && !error; i++)
        error = volume_read_pair(wanted.parameters.items[i], "--parameter", arena, &map);
    if (wanted.connection)
        text_map_set(&map, arena, "connection", wanted.connection);
    if (wanted.rate)
        text_map_set(&map, arena, "transfer-rate", wanted.rate);
    message_map_write(&map, arena, &csi__v1__create_volume_request__parameters_entry__descriptor,
                      &request->parameters, &request->n_parameters);
    return error;
}

static struct error *
read_size(struct arena *arena, Csi__V1__CreateVolumeRequest *request)
{
    if (!wanted.size)
        return NULL;
    request->capacity_range = arena_alloc(arena, sizeof *request->capacity_range);
    csi__v1__capacity_range__init(request->capacity_range);
    return error_wrap(size_text_parse(wanted.size, &request->capacity_range->required_bytes),
                      "--size");
}

static void
read_node(struct arena *arena, Csi__V1__CreateVolumeRequest *request)
{
    struct text_map segments = {0};
    if (!wanted.node)
        return;
    Csi__V1__TopologyRequirement *requirement = arena_alloc(arena, sizeof *requirement);
    Csi__V1__Topology **terms = arena_alloc(arena, sizeof *terms);
    csi__v1__topology_requirement__init(requirement);
    terms[0] = arena_alloc(arena, sizeof *terms[0]);
    csi__v1__topology__init(terms[0]);
    text_map_set(&segments, arena, IDS_TOPOLOGY_NODE, wanted.node);
    message_map_write(&segments, arena, &csi__v1__topology__segments_entry__descriptor,
                      &terms[0]->segments, &terms[0]->n_segments);
    requirement->requisite = terms;
    requirement->n_requisite = 1;
    request->accessibility_requirements = requirement;
}

/* ---- the source ---- */

static struct error *
find_volume(struct client *client, Csi__V1__VolumeContentSource *source, const char **type)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, wanted.from_volume, &volume);
    if (error)
        return error;
    source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
    source->volume = arena_alloc(&client->arena, sizeof *source->volume);
    csi__v1__volume_content_source__volume_source__init(source->volume);
    source->volume->volume_id = volume->volume->volume_id;
    *type = volume->type;
    return NULL;
}

static struct error *
find_snapshot(struct client *client, Csi__V1__VolumeContentSource *source, const char **type)
{
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, wanted.from_snapshot, &snapshot);
    if (error)
        return error;
    source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
    source->snapshot = arena_alloc(&client->arena, sizeof *source->snapshot);
    csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
    source->snapshot->snapshot_id = snapshot->snapshot->snapshot_id;
    *type = snapshot->type;
    return NULL;
}

static struct error *
find_source(struct client *client, Csi__V1__CreateVolumeRequest *request, const char **type)
{
    if (!wanted.from_volume && !wanted.from_snapshot)
        return NULL;
    Csi__V1__VolumeContentSource *source = arena_alloc(&client->arena, sizeof *source);
    csi__v1__volume_content_source__init(source);
    request->volume_content_source = source;
    return wanted.from_volume ? find_volume(client, source, type)
                              : find_snapshot(client, source, type);
}

/* ---- the request ---- */

/* A third-party driver need not list the volume's context again, so the answer's is used. */
static struct error *
publish(struct client *client, const Csi__V1__Volume *made, const char *type)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, made->volume_id, &volume);
    if (error)
        return error;
    if (!volume->volume->n_volume_context) {
        volume->volume->volume_context = made->volume_context;
        volume->volume->n_volume_context = made->n_volume_context;
    }
    return volume_publish(client, volume, type, wanted.path, false);
}

/* Creates the volume, publishes it if wanted, and shows it. */
static struct error *
make(struct client *client)
{
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    const char *type = "directory";
    request.name = (char *)wanted.name;
    struct error *error = read_size(&client->arena, &request);
    if (!error)
        error = read_parameters(&client->arena, &request);
    if (!error)
        error = find_source(client, &request, &type);
    if (error)
        return error;
    read_node(&client->arena, &request);
    if (wanted.block || wanted.fs_type)
        type = wanted.block ? "block" : wanted.fs_type;
    Csi__V1__VolumeCapability *capability = volume_capability(type, &client->arena);
    request.volume_capabilities = &capability;
    request.n_volume_capabilities = 1;
    error =
        progress_ask(client, CREATE_VOLUME, &request, progress_find_volume, wanted.name, &reply);
    if (!error && wanted.path)
        error = publish(client, reply->volume, type);
    return error ? error : inventory_show_volume(client, reply->volume->volume_id);
}

/* ---- the commands ---- */

static struct error *
create(struct client *client)
{
    wanted.name = client->words[0];
    if (wanted.from_volume && wanted.from_snapshot)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--from-volume and --from-snapshot exclude each other");
    if (wanted.block && wanted.fs_type)
        return error_new(CODE_INVALID_ARGUMENT, "--block and --fs exclude each other");
    return make(client);
}

const struct command volume_create_command = {
    .name = "create",
    .summary = "create a volume",
    .words = "NAME",
    .help = "Creates a volume: a directory, an image with a file system, or a block device. "
            "Repeating the command\nreturns the same volume.",
    .flags = create_flags,
    .run = create,
};

static struct error *
clone_volume(struct client *client)
{
    wanted.from_volume = client->words[0];
    wanted.name = client->words[1];
    return make(client);
}

const struct command volume_clone_command = {
    .name = "clone",
    .summary = "create a volume with the content of another",
    .words = "VOLUME NAME",
    .help = "Creates the volume NAME with the current content of VOLUME.",
    .flags = copy_flags,
    .run = clone_volume,
};

static struct error *
restore(struct client *client)
{
    wanted.from_snapshot = client->words[0];
    wanted.name = client->words[1];
    return make(client);
}

const struct command snapshot_restore_command = {
    .name = "restore",
    .summary = "create a volume with the content of a snapshot",
    .words = "SNAPSHOT NAME",
    .help = "Creates the volume NAME with the content of a snapshot.",
    .flags = copy_flags,
    .run = restore,
};
