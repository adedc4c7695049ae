/* SPDX-License-Identifier: Apache-2.0 */
/* Access modes that a driver need not know: see access_modes.h. */
#include "connections/request/access_modes.h"

#include <string.h>

typedef Csi__V1__VolumeCapability volume_capability;

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name
#define NODE_SERVICE "/csi.v1.Node/"

static bool
knows_all_modes(const struct connection *connection, const struct method *method)
{
    if (!connection_is_known(connection))
        return true;
    if (strncmp(method->path, NODE_SERVICE, strlen(NODE_SERVICE)) == 0)
        return connection_node_capabilities(connection) >>
                   CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__SINGLE_NODE_MULTI_WRITER &
               1;
    return CONNECTION_CAN(connection, SINGLE_NODE_MULTI_WRITER);
}

/* The request may go to other drivers too, so the capability is copied. */
static volume_capability *
translate(volume_capability *capability, struct arena *arena)
{
    const Csi__V1__VolumeCapability__AccessMode *mode = capability->access_mode;
    if (!mode || (mode->mode != MODE(SINGLE_NODE_SINGLE_WRITER) &&
                  mode->mode != MODE(SINGLE_NODE_MULTI_WRITER)))
        return capability;
    volume_capability *copy = arena_alloc(arena, sizeof *copy);
    *copy = *capability;
    copy->access_mode = arena_alloc(arena, sizeof *copy->access_mode);
    *copy->access_mode = *mode;
    copy->access_mode->mode = MODE(SINGLE_NODE_WRITER);
    return copy;
}

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessage *request, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, name);
    return field && field->descriptor == &csi__v1__volume_capability__descriptor ? field : NULL;
}

static void
translate_one(ProtobufCMessage *request, const ProtobufCFieldDescriptor *field, struct arena *arena)
{
    volume_capability **place = (volume_capability **)((char *)request + field->offset);
    if (*place)
        *place = translate(*place, arena);
}

static void
translate_list(ProtobufCMessage *request, const ProtobufCFieldDescriptor *field,
               struct arena *arena)
{
    volume_capability ***place = (volume_capability ***)((char *)request + field->offset);
    size_t count = *(size_t *)((char *)request + field->quantifier_offset);
    volume_capability **copies = arena_alloc(arena, count * sizeof *copies);
    for (size_t i = 0; i < count; i++)
        copies[i] = translate((*place)[i], arena);
    *place = copies;
}

void
access_modes_translate_in(const struct connection *connection, const struct method *method,
                          ProtobufCMessage *request, struct arena *arena)
{
    const ProtobufCFieldDescriptor *one = find_field(request, "volume_capability");
    const ProtobufCFieldDescriptor *list = find_field(request, "volume_capabilities");
    if ((!one && !list) || knows_all_modes(connection, method))
        return;
    if (one)
        translate_one(request, one, arena);
    if (list)
        translate_list(request, list, arena);
}
