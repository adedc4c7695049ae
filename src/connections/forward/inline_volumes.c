/* SPDX-License-Identifier: Apache-2.0 */
/* Inline volumes: see inline_volumes.h. */
#include "connections/forward/inline_volumes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "connections/request/choice.h"
#include "connections/request/global_id.h"
#include "connections/request/map_field.h"
#include "message/message_map.h"

#define EPHEMERAL_KEY "csi.storage.k8s.io/ephemeral"
#define KEY_SIZE (sizeof "inline/" + GLOBAL_ID_MAX)

/* The volume_id of a request, unless it is one of ours or missing; then NULL. */
static const char *
find_id(const ProtobufCMessage *request)
{
    struct global_id parts;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, "volume_id");
    const char *id = field ? *(const char *const *)((const char *)request + field->offset) : "";
    return id[0] && !global_id_parse(ID_VOLUME, id, &parts) ? id : NULL;
}

static struct error *
make_key(const ProtobufCMessage *request, char key[KEY_SIZE])
{
    const char *id = find_id(request);
    if (strlen(id) > GLOBAL_ID_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "volume_id has %zu bytes; %d are allowed",
                         strlen(id), GLOBAL_ID_MAX);
    snprintf(key, KEY_SIZE, "inline/%s", id);
    return NULL;
}

/* NULL: the request does not publish an inline volume. `context` is its volume_context. */
static const Csi__V1__NodePublishVolumeRequest *
as_publication(const ProtobufCMessage *request, struct arena *arena, struct text_map *context)
{
    if (request->descriptor != &csi__v1__node_publish_volume_request__descriptor)
        return NULL;
    const Csi__V1__NodePublishVolumeRequest *publish =
        (const Csi__V1__NodePublishVolumeRequest *)request;
    *context = message_map_read(publish->volume_context, publish->n_volume_context, arena);
    const char *ephemeral = text_map_find(context, EPHEMERAL_KEY);
    return ephemeral && strcmp(ephemeral, "true") == 0 ? publish : NULL;
}

static bool
is_gone(const char *path)
{
    struct stat at;
    return lstat(path, &at) && errno == ENOENT;
}

/* ---- rows: "CONNECTION PATH", with the path of the first publication ---- */

struct row {
    const char *connection;
    const char *path;
};

static struct error *
read_row(const struct router *router, const char *key, struct arena *arena, struct row *out)
{
    struct store_entry entry;
    bool found;
    struct error *error = store_find(router->store, key, arena, &entry, &found);
    if (error)
        return error;
    if (!found)
        return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", key + strlen("inline/"));
    char *rest = arena_copy(arena, entry.value, entry.value_size);
    out->connection = strsep(&rest, " ");
    out->path = rest ? rest : "";
    return NULL;
}

static struct error *
write_row(const struct router *router, const char *key, const struct row *row, struct arena *arena)
{
    const char *text = arena_print(arena, "%s %s", row->connection, row->path);
    struct store_change change = {key, (const uint8_t *)text, strlen(text), STORE_ANY};
    return store_write(router->store, &change, 1, NULL);
}

/* ---- finding ---- */

/*
 * Keeps a row whose path still exists: a publication at a second path may fail, and the first one
 * must not be lost.
 */
static struct error *
find_for_publication(const struct router *router, const struct connection_set *set, const char *key,
                     const Csi__V1__NodePublishVolumeRequest *publish,
                     const struct text_map *context, struct arena *arena, struct connection **out)
{
    struct row row;
    struct error *error = read_row(router, key, arena, &row);
    if (!error && !is_gone(row.path) && (*out = connection_set_find(set, row.connection)))
        return NULL;
    if (error && error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    error = choice_of_name(set, text_map_find(context, CHOICE_NAME), arena, out);
    if (error)
        return error;
    row = (struct row){(*out)->spec->name, publish->target_path};
    return write_row(router, key, &row, arena);
}

/* Unpublishing what is gone is no error. */
static bool
is_unpublished(const ProtobufCMessage *request)
{
    return request->descriptor == &csi__v1__node_unpublish_volume_request__descriptor &&
           is_gone(((const Csi__V1__NodeUnpublishVolumeRequest *)request)->target_path);
}

static struct error *
find_by_row(const struct router *router, const struct connection_set *set, const char *key,
            const ProtobufCMessage *request, struct arena *arena, struct connection **out)
{
    struct row row;
    struct error *error = read_row(router, key, arena, &row);
    if (error)
        return is_unpublished(request) ? error_forgive(error, CODE_NOT_FOUND) : error;
    *out = connection_set_find(set, row.connection);
    if (*out)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "there is no connection \"%s\" for \"%s\"", row.connection,
                     key + strlen("inline/"));
}

struct error *
inline_volumes_find(const struct router *router, const struct connection_set *set,
                    const ProtobufCMessage *request, struct connection **out)
{
    struct arena arena AUTO(arena_clear);
    struct text_map context;
    char key[KEY_SIZE];
    *out = NULL;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = make_key(request, key);
    if (error)
        return error;
    const Csi__V1__NodePublishVolumeRequest *publish = as_publication(request, &arena, &context);
    return publish ? find_for_publication(router, set, key, publish, &context, &arena, out)
                   : find_by_row(router, set, key, request, &arena, out);
}

void
inline_volumes_prepare(ProtobufCMessage *request, struct arena *arena)
{
    struct map_field field;
    struct text_map kept = {0};
    if (!map_field_find(request, "volume_context", &field))
        return;
    struct text_map context = map_field_read(&field, arena);
    for (size_t i = 0; i < context.count; i++)
        if (strcmp(context.pairs[i].key, CHOICE_NAME) != 0)
            text_map_set(&kept, arena, context.pairs[i].key, context.pairs[i].value);
    map_field_write(&field, &kept, arena);
}

struct error *
inline_volumes_note(const struct router *router, const ProtobufCMessage *request)
{
    struct arena arena AUTO(arena_clear);
    struct row row = {0};
    char key[KEY_SIZE];
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (request->descriptor != &csi__v1__node_unpublish_volume_request__descriptor)
        return NULL;
    const char *path = ((const Csi__V1__NodeUnpublishVolumeRequest *)request)->target_path;
    struct error *error = make_key(request, key);
    if (!error)
        error = read_row(router, key, &arena, &row);
    bool has_ended = !error && (strcmp(path, row.path) == 0 || is_gone(row.path));
    error = error_forgive(error, CODE_NOT_FOUND);
    struct store_change change = {key, NULL, 0, STORE_ANY};
    return has_ended ? store_write(router->store, &change, 1, NULL) : error;
}
