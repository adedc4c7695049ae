/* SPDX-License-Identifier: Apache-2.0 */
/* Map fields by name: see map_field.h. */
#include "connections/request/map_field.h"

#include "message/message_map.h"

bool
map_field_find(ProtobufCMessage *message, const char *name, struct map_field *out)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (!field || field->label != PROTOBUF_C_LABEL_REPEATED ||
        field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    *out = (struct map_field){
        .entries = (char *)message + field->offset,
        .count = (size_t *)((char *)message + field->quantifier_offset),
        .type = field->descriptor,
    };
    return true;
}

struct text_map
map_field_read(const struct map_field *field, struct arena *arena)
{
    return message_map_read(*(void **)field->entries, *field->count, arena);
}

void
map_field_write(const struct map_field *field, const struct text_map *map, struct arena *arena)
{
    message_map_write(map, arena, field->type, field->entries, field->count);
}
