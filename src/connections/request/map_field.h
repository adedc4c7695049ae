/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of type map<string,string> of any message, by name: secrets, parameters. */
#ifndef CONNECTIONS_REQUEST_MAP_FIELD_H
#define CONNECTIONS_REQUEST_MAP_FIELD_H

#include "message/service.h"
#include <stdbool.h>

#include "base/arena.h"
#include "base/text_map.h"

struct map_field {
    void *entries; /* the field */
    size_t *count; /* its n_ member */
    const ProtobufCMessageDescriptor *type;
};

/* False: the message has no such field. */
bool map_field_find(ProtobufCMessage *message, const char *name, struct map_field *out);

struct text_map map_field_read(const struct map_field *field, struct arena *arena);
void map_field_write(const struct map_field *field, const struct text_map *map,
                     struct arena *arena);

#endif
