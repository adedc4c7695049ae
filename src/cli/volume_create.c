/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume create and clone. */
#include <string.h>

#include "base/size_text.h"
#include "cli/progress.h"
#include "cli/volume.h"
#include "message/message_map.h"

#define CREATE_VOLUME "csi.v1.Controller/CreateVolume"

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
read_parameters(const struct volume_wish *wish, struct arena *arena,
                Csi__V1__CreateVolumeRequest *request)
{
    const struct text_list *list = &wish->parameters;
    struct text_map map = {0};
    struct error *error = NULL;
    for (size_t i = 0; i < list->count && !error; i++)
        error = volume_read_pair(list->items[i], "--parameter", arena, &map);
    if (wish->connection)
        text_map_set(&map, arena, "connection", wish->connection);
    message_map_write(&map, arena, &csi__v1__create_volume_request__parameters_entry__descriptor,
                      &request->parameters, &request->n_parameters);
    return error;
}

static struct error *
read_size(const char *size, struct arena *arena, Csi__V1__CreateVolumeRequest *request)
{
    if (!size)
        return NULL;
    request->capacity_range = arena_alloc(arena, sizeof *request->capacity_range);
    csi__v1__capacity_range__init(request->capacity_range);
    return error_wrap(size_text_parse(size, &request->capacity_range->required_bytes), "--size");
}

/* ---- the source ---- */

static Csi__V1__VolumeContentSource *
make_source(struct arena *arena)
{
    Csi__V1__VolumeContentSource *source = arena_alloc(arena, sizeof *source);
    csi__v1__volume_content_source__init(source);
    return source;
}

static struct error *
find_volume(struct client *client, const char *text, Csi__V1__CreateVolumeRequest *request,
            const char **type)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, text, &volume);
    if (error)
        return error;
    Csi__V1__VolumeContentSource *source = make_source(&client->arena);
    source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
    source->volume = arena_alloc(&client->arena, sizeof *source->volume);
    csi__v1__volume_content_source__volume_source__init(source->volume);
    source->volume->volume_id = volume->volume->volume_id;
    request->volume_content_source = source;
    *type = volume->type;
    return NULL;
}

static struct error *
find_snapshot(struct client *client, const char *text, Csi__V1__CreateVolumeRequest *request,
              const char **type)
{
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, text, &snapshot);
    if (error)
        return error;
    Csi__V1__VolumeContentSource *source = make_source(&client->arena);
    source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
    source->snapshot = arena_alloc(&client->arena, sizeof *source->snapshot);
    csi__v1__volume_content_source__snapshot_source__init(source->snapshot);
    source->snapshot->snapshot_id = snapshot->snapshot->snapshot_id;
    request->volume_content_source = source;
    *type = snapshot->type;
    return NULL;
}

static struct error *
find_source(struct client *client, const struct volume_wish *wish,
            Csi__V1__CreateVolumeRequest *request, const char **type)
{
    if (wish->from_volume)
        return find_volume(client, wish->from_volume, request, type);
    if (wish->from_snapshot)
        return find_snapshot(client, wish->from_snapshot, request, type);
    return NULL;
}

/* ---- the request ---- */

static const char *
type_of(const struct volume_wish *wish, const char *source_type)
{
    return wish->block ? "block" : wish->fs_type ? wish->fs_type : source_type;
}

/* A third-party driver need not tell again what it said of the volume when it made it. */
static struct error *
publish(struct client *client, const Csi__V1__Volume *made, const char *type, const char *path)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, made->volume_id, &volume);
    if (error)
        return error;
    if (!volume->volume->n_volume_context) {
        volume->volume->volume_context = made->volume_context;
        volume->volume->n_volume_context = made->n_volume_context;
    }
    return volume_publish(client, volume, type, path, false);
}

struct error *
volume_make(struct client *client, const struct volume_wish *wish)
{
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse *reply;
    const char *source_type = "directory";
    request.name = (char *)wish->name;
    struct error *error = read_size(wish->size, &client->arena, &request);
    if (!error)
        error = read_parameters(wish, &client->arena, &request);
    if (!error)
        error = find_source(client, wish, &request, &source_type);
    if (error)
        return error;
    Csi__V1__VolumeCapability *capability =
        volume_capability(type_of(wish, source_type), &client->arena);
    request.volume_capabilities = &capability;
    request.n_volume_capabilities = 1;
    error = request.volume_content_source ? progress_ask(client, CREATE_VOLUME, &request,
                                                         progress_find_volume, wish->name, &reply)
                                          : client_ask(client, CREATE_VOLUME, &request, &reply);
    if (!error && wish->path)
        error = publish(client, reply->volume, type_of(wish, source_type), wish->path);
    return error ? error : inventory_show_volume(client, reply->volume->volume_id);
}

/* ---- the commands ---- */

static struct error *
check_wish(const struct volume_wish *wish)
{
    if (wish->from_volume && wish->from_snapshot)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--from-volume and --from-snapshot exclude each other");
    if (wish->block && wish->fs_type)
        return error_new(CODE_INVALID_ARGUMENT, "--block and --fs exclude each other");
    return NULL;
}

static struct error *
create(struct client *client, struct volume_wish *wish, int count, char **arguments,
       enum exit_code *exit_code)
{
    const struct option own[] = {
        VOLUME_SIZE_FLAG(wish),
        VOLUME_PARAMETER_FLAG(wish),
        VOLUME_CONNECTION_FLAG(wish),
        VOLUME_PUBLISH_FLAG(wish),
        {"fs", 0, "TYPE", OPTION_TEXT, &wish->fs_type,
         "ext4, xfs or btrfs in an image, or none: a directory; default none"},
        {"block", 0, NULL, OPTION_FLAG, &wish->block, "a raw block device"},
        {"from-volume", 0, "VOLUME", OPTION_TEXT, &wish->from_volume,
         "copy the content of this one"},
        {"from-snapshot", 0, "SNAPSHOT", OPTION_TEXT, &wish->from_snapshot,
         "copy the content of this one"},
    };
    const struct client_usage usage = {
        "skycap volume create NAME [options]",
        "Creates a volume: a directory, an image with a file system, or a block device. Repeating "
        "the command\nreturns the same volume.",
        own,
        COUNT_OF(own),
        1,
        1};
    struct error *error = client_open(client, &usage, count, arguments, exit_code);
    if (error || client->has_helped)
        return error;
    wish->name = client->words[0];
    error = check_wish(wish);
    return error ? error : volume_make(client, wish);
}

VERB(volume_run_create)
{
    struct client client AUTO(client_close) = {0};
    struct volume_wish wish = {0};
    struct error *error = create(&client, &wish, count, arguments, exit_code);
    options_free_list(&wish.parameters);
    return error;
}

static struct error *
clone_volume(struct client *client, struct volume_wish *wish, int count, char **arguments,
             enum exit_code *exit_code)
{
    const struct option own[] = {
        VOLUME_SIZE_FLAG(wish),
        VOLUME_PARAMETER_FLAG(wish),
        VOLUME_CONNECTION_FLAG(wish),
        VOLUME_PUBLISH_FLAG(wish),
    };
    const struct client_usage usage = {
        "skycap volume clone VOLUME NAME [options]",
        "Creates the volume NAME with the current content of VOLUME.",
        own,
        COUNT_OF(own),
        2,
        2};
    struct error *error = client_open(client, &usage, count, arguments, exit_code);
    if (error || client->has_helped)
        return error;
    wish->from_volume = client->words[0];
    wish->name = client->words[1];
    return volume_make(client, wish);
}

VERB(volume_run_clone)
{
    struct client client AUTO(client_close) = {0};
    struct volume_wish wish = {0};
    struct error *error = clone_volume(&client, &wish, count, arguments, exit_code);
    options_free_list(&wish.parameters);
    return error;
}
