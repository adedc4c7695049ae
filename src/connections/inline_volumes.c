/* SPDX-License-Identifier: Apache-2.0 */
/* Inline volumes: see inline_volumes.h. */
#include "connections/inline_volumes.h"

#include <stdio.h>
#include <string.h>

#include "connections/choice.h"
#include "connections/global_id.h"
#include "rpc/message_map.h"

#define EPHEMERAL_KEY "csi.storage.k8s.io/ephemeral"
#define KEY_SIZE (sizeof "inline/" + GLOBAL_ID_MAX)

static const char *
volume_id_of(const ProtobufCMessage *request)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, "volume_id");
    return *(const char *const *)((const char *)request + field->offset);
}

bool
inline_volumes_is_one(const ProtobufCMessage *request)
{
    struct global_id parts;
    const char *id = volume_id_of(request);
    return id[0] && !global_id_parse(ID_VOLUME, id, &parts);
}

static struct error *
make_key(const ProtobufCMessage *request, char key[KEY_SIZE])
{
    const char *id = volume_id_of(request);
    if (strlen(id) > GLOBAL_ID_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "volume_id has %zu bytes; %d are allowed",
                         strlen(id), GLOBAL_ID_MAX);
    snprintf(key, KEY_SIZE, "inline/%s", id);
    return NULL;
}

/* The publication of an inline volume names its connection; NULL: it is none. */
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

static struct error *
remember(const struct desk *desk, const char *key, const struct connection *connection)
{
    const char *name = connection->spec->name;
    struct store_change change = {key, (const uint8_t *)name, strlen(name), STORE_ANY};
    return store_write(desk->options.store, &change, 1, NULL);
}

static struct error *
recall(const struct desk *desk, const struct connection_set *set, const char *key,
       struct arena *arena, struct connection **out)
{
    struct store_entry entry;
    struct error *error = store_get(desk->options.store, key, arena, &entry);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", key + strlen("inline/"));
    }
    if (error)
        return error;
    const char *name = arena_copy(arena, entry.value, entry.value_size);
    *out = connection_set_find(set, name);
    if (*out)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "there is no connection \"%s\", which \"%s\" is of", name,
                     key + strlen("inline/"));
}

struct error *
inline_volumes_find(const struct desk *desk, const struct connection_set *set,
                    const ProtobufCMessage *request, struct connection **out)
{
    struct arena arena;
    struct text_map context;
    char key[KEY_SIZE];
    *out = NULL;
    struct error *error = make_key(request, key);
    if (error)
        return error;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (as_publication(request, &arena, &context)) {
        error = choice_of_name(set, text_map_find(&context, "connection"), &arena, out);
        if (!error)
            error = remember(desk, key, *out);
    } else {
        error = recall(desk, set, key, &arena, out);
    }
    arena_clear(&arena);
    return error;
}

struct error *
inline_volumes_note(const struct desk *desk, const ProtobufCMessage *request)
{
    char key[KEY_SIZE];
    if (request->descriptor != &csi__v1__node_unpublish_volume_request__descriptor)
        return NULL;
    struct error *error = make_key(request, key);
    struct store_change change = {key, NULL, 0, STORE_ANY};
    return error ? error : store_write(desk->options.store, &change, 1, NULL);
}
