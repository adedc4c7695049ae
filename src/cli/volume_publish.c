/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap volume publish and unpublish: does by hand what an orchestrator does for a workload. A
 * volume is attached to the node, staged once, and published from there at any number of paths.
 * Unpublishing the last one unstages and detaches it. Stagings and attachments of others, such as
 * an orchestrator, are not touched.
 *
 * The staging directory is beside the server's socket, so that each server of a machine has its
 * own.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "cli/volume.h"
#include "message/message_map.h"
#include "rpc/http2/address.h"

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* For a server without a socket in the file system. */
#define RUN_DIRECTORY "/run/skycap"

/* ---- paths ---- */

/* Resolves links, as in the kernel's mount table. The last element need not exist. */
static struct error *
real_path(const char *path, struct arena *arena, char **out)
{
    char real[PATH_MAX];
    if (realpath(path, real)) {
        *out = arena_string(arena, real);
        return NULL;
    }
    char *parent = arena_string(arena, path);
    size_t size = strlen(parent);
    while (size > 1 && parent[size - 1] == '/')
        parent[--size] = '\0';
    char *slash = strrchr(parent, '/');
    const char *name = slash ? slash + 1 : parent;
    if (slash)
        *slash = '\0';
    if (errno != ENOENT || !realpath(slash ? (slash > parent ? parent : "/") : ".", real))
        return error_from_errno(errno, "%s", path);
    *out = arena_print(arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    return NULL;
}

/* The directory of the server's socket. */
static struct error *
run_directory(struct client *client, const char **out)
{
    struct address address;
    struct error *error = address_parse(client->flags.endpoint, &address);
    if (error)
        return error;
    if (address.kind != ADDRESS_UNIX) {
        *out = RUN_DIRECTORY;
        if (mkdir(RUN_DIRECTORY, 0755) != 0 && errno != EEXIST)
            return error_from_errno(errno, "make %s, where volumes are staged", RUN_DIRECTORY);
        return NULL;
    }
    char *slash = strrchr(address.path, '/');
    if (slash)
        *slash = '\0';
    char real[PATH_MAX];
    if (!realpath(!slash ? "." : slash > address.path ? address.path : "/", real))
        return error_from_errno(errno, "the directory of %s", client->flags.endpoint);
    *out = arena_string(&client->arena, real);
    return NULL;
}

/*
 * v:local/HANDLE is staged in "local.HANDLE". Other characters, in handles of third-party drivers,
 * become %XX, so that each id has its own path.
 */
static char *
staging_name(const char *id, struct arena *arena)
{
    struct buffer name AUTO(buffer_clear) = {0};
    for (const char *at = strncmp(id, "v:", 2) == 0 ? id + 2 : id; *at; at++)
        if (*at == '/')
            buffer_append_byte(&name, '.');
        else if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *at))
            buffer_append_byte(&name, (uint8_t)*at);
        else
            buffer_print(&name, "%%%02X", (unsigned char)*at);
    return arena_string(arena, buffer_text(&name));
}

/* The path where a volume is staged; creates its parent directory. */
static struct error *
staging_path(struct client *client, const char *id, char **out)
{
    const char *directory;
    struct error *error = run_directory(client, &directory);
    if (error)
        return error;
    const char *root = arena_print(&client->arena, "%s/staging", directory);
    if (mkdir(root, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "make %s, where volumes are staged", root);
    *out = arena_print(&client->arena, "%s/%s", root, staging_name(id, &client->arena));
    return NULL;
}

/* ---- steps ---- */

struct publishing {
    const volume_info *volume;
    Csi__V1__VolumeCapability *capability;
    struct text_map volume_context;
    struct text_map publish_context; /* from attaching */
    char *staging;
};

static struct error *
ask_node_id(struct client *client, char **node_id)
{
    Csi__V1__NodeGetInfoRequest request = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
    Csi__V1__NodeGetInfoResponse *reply;
    struct error *error = client_ask(client, "csi.v1.Node/NodeGetInfo", &request, &reply);
    if (!error)
        *node_id = reply->node_id;
    return error;
}

/* Fills one of the request's contexts. */
#define WRITE_CONTEXT(client, p, request, type, name)                                              \
    message_map_write(&(p)->name, &(client)->arena,                                                \
                      &csi__v1__##type##__##name##_entry__descriptor, &(request)->name,            \
                      &(request)->n_##name)

static struct error *
attach(struct client *client, struct publishing *p, char *node_id)
{
    Csi__V1__ControllerPublishVolumeRequest request =
        CSI__V1__CONTROLLER_PUBLISH_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerPublishVolumeResponse *reply;
    request.volume_id = p->volume->volume->volume_id;
    request.node_id = node_id;
    request.volume_capability = p->capability;
    WRITE_CONTEXT(client, p, &request, controller_publish_volume_request, volume_context);
    struct error *error =
        client_ask(client, "csi.v1.Controller/ControllerPublishVolume", &request, &reply);
    if (!error)
        p->publish_context =
            message_map_read(reply->publish_context, reply->n_publish_context, &client->arena);
    return error;
}

static struct error *
detach(struct client *client, const volume_info *volume, char *node_id)
{
    Csi__V1__ControllerUnpublishVolumeRequest request =
        CSI__V1__CONTROLLER_UNPUBLISH_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerUnpublishVolumeResponse *reply;
    request.volume_id = volume->volume->volume_id;
    request.node_id = node_id;
    return client_ask(client, "csi.v1.Controller/ControllerUnpublishVolume", &request, &reply);
}

static struct error *
stage(struct client *client, const struct publishing *p)
{
    Csi__V1__NodeStageVolumeRequest request = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    Csi__V1__NodeStageVolumeResponse *reply;
    request.volume_id = p->volume->volume->volume_id;
    request.staging_target_path = p->staging;
    request.volume_capability = p->capability;
    WRITE_CONTEXT(client, p, &request, node_stage_volume_request, volume_context);
    WRITE_CONTEXT(client, p, &request, node_stage_volume_request, publish_context);
    return client_ask(client, "csi.v1.Node/NodeStageVolume", &request, &reply);
}

static struct error *
unstage(struct client *client, const volume_info *volume, char *staging)
{
    Csi__V1__NodeUnstageVolumeRequest request = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
    Csi__V1__NodeUnstageVolumeResponse *reply;
    request.volume_id = volume->volume->volume_id;
    request.staging_target_path = staging;
    struct error *error = client_ask(client, "csi.v1.Node/NodeUnstageVolume", &request, &reply);
    if (!error)
        rmdir(staging); /* may fail: an empty directory does no harm */
    return error;
}

static struct error *
publish_at(struct client *client, const struct publishing *p, char *path, bool read_only)
{
    Csi__V1__NodePublishVolumeRequest request = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
    Csi__V1__NodePublishVolumeResponse *reply;
    request.volume_id = p->volume->volume->volume_id;
    request.staging_target_path = p->staging;
    request.target_path = path;
    request.volume_capability = p->capability;
    request.readonly = read_only;
    WRITE_CONTEXT(client, p, &request, node_publish_volume_request, volume_context);
    WRITE_CONTEXT(client, p, &request, node_publish_volume_request, publish_context);
    return client_ask(client, "csi.v1.Node/NodePublishVolume", &request, &reply);
}

static struct error *
unpublish_at(struct client *client, const volume_info *volume, char *path)
{
    Csi__V1__NodeUnpublishVolumeRequest request = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
    Csi__V1__NodeUnpublishVolumeResponse *reply;
    request.volume_id = volume->volume->volume_id;
    request.target_path = path;
    return client_ask(client, "csi.v1.Node/NodeUnpublishVolume", &request, &reply);
}

/* ---- publish and unpublish ---- */

/* Unstages after the last publication from our staging path; detaches after the last use. */
static struct error *
release(struct client *client, const volume_info *before, char *node_id)
{
    char *staging;
    volume_info *volume;
    size_t users = 0, others = 0;
    struct error *error = staging_path(client, before->volume->volume_id, &staging);
    if (!error)
        error = inventory_find_volume(client, before->volume->volume_id, &volume);
    for (size_t i = 0; !error && i < volume->n_uses; i++) {
        users += strcmp(volume->uses[i]->staging_path, staging) == 0;
        others += strcmp(volume->uses[i]->path, staging) != 0;
    }
    if (!error && !users)
        error = unstage(client, volume, staging);
    if (!error && !others)
        error = detach(client, volume, node_id);
    return error;
}

/* Such a volume may be published at several paths of its node. */
Csi__V1__VolumeCapability *
volume_capability(const char *type, struct arena *arena)
{
    Csi__V1__VolumeCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__volume_capability__init(capability);
    capability->access_mode = arena_alloc(arena, sizeof *capability->access_mode);
    csi__v1__volume_capability__access_mode__init(capability->access_mode);
    capability->access_mode->mode = MODE(SINGLE_NODE_MULTI_WRITER);
    if (strcmp(type, "block") == 0) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = arena_alloc(arena, sizeof *capability->block);
        csi__v1__volume_capability__block_volume__init(capability->block);
    } else {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
        capability->mount = arena_alloc(arena, sizeof *capability->mount);
        csi__v1__volume_capability__mount_volume__init(capability->mount);
        capability->mount->fs_type = strcmp(type, "directory") == 0 ? "" : (char *)type;
    }
    return capability;
}

static struct publishing
prepare(const volume_info *volume, const char *type, struct arena *arena)
{
    return (struct publishing){
        .volume = volume,
        .capability =
            volume->n_capabilities ? volume->capabilities[0] : volume_capability(type, arena),
        .volume_context = message_map_read(volume->volume->volume_context,
                                           volume->volume->n_volume_context, arena),
    };
}

static struct error *
stage_and_publish(struct client *client, const struct publishing *p, char *path, bool read_only)
{
    /* CSI wants the caller to create the staging path; third-party drivers rely on it. */
    if (mkdir(p->staging, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "cannot make %s, where the volume is staged", p->staging);
    struct error *error = stage(client, p);
    return error ? error : publish_at(client, p, path, read_only);
}

struct error *
volume_publish(struct client *client, const volume_info *volume, const char *type, const char *path,
               bool read_only)
{
    struct publishing publishing = prepare(volume, type, &client->arena);
    char *real, *node_id;
    struct error *error = real_path(path, &client->arena, &real);
    if (!error)
        error = staging_path(client, volume->volume->volume_id, &publishing.staging);
    if (!error)
        error = ask_node_id(client, &node_id);
    if (!error)
        error = attach(client, &publishing, node_id);
    if (error)
        return error;
    error = stage_and_publish(client, &publishing, real, read_only);
    if (error)
        error_free(release(client, volume, node_id)); /* the first error matters */
    return error;
}

static bool is_read_only, is_block;

static const struct option publish_flags[] = {
    {"read-only", 0, NULL, OPTION_FLAG, &is_read_only, "mount it read-only"},
    {"block", 0, NULL, OPTION_FLAG, &is_block,
     "the volume is a raw block device; needed only for third-party drivers"},
    {0},
};

static struct error *
publish(struct client *client)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, client->words[0], &volume);
    if (!error)
        error =
            volume_publish(client, volume, is_block ? "block" : "", client->words[1], is_read_only);
    return error ? error : inventory_show_volume(client, volume->volume->volume_id);
}

const struct command volume_publish_command = {
    .name = "publish",
    .summary = "mount a volume at a path of its node",
    .words = "VOLUME PATH",
    .help = "Publishes a volume at PATH, which is created: a directory, or a file for a block "
            "device. It is staged\nin the directory `staging` beside the server's socket.",
    .flags = publish_flags,
    .run = publish,
};

static struct error *
unpublish(struct client *client)
{
    volume_info *volume = NULL;
    char *path, *node_id;
    struct error *error = real_path(client->words[1], &client->arena, &path);
    if (!error)
        error = inventory_find_volume(client, client->words[0], &volume);
    if (!error)
        error = ask_node_id(client, &node_id);
    if (!error)
        error = unpublish_at(client, volume, path);
    if (!error)
        error = release(client, volume, node_id);
    return error ? error : inventory_show_volume(client, volume->volume->volume_id);
}

const struct command volume_unpublish_command = {
    .name = "unpublish",
    .summary = "undo a publication",
    .words = "VOLUME PATH",
    .help = "Unpublishes a volume from PATH, which is removed.",
    .run = unpublish,
};
