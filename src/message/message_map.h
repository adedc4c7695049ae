/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of type map<string,string>. protobuf-c makes a type of its own for the entries of each such field; all of them have the same layout: base,
 * key, value. These functions work for every one.
 */
#ifndef MESSAGE_MAP_H
#define MESSAGE_MAP_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/text_map.h"

/* `entries` and `count` are the field and its n_ member. The texts stay the message's. Of a key sent twice the last counts. */
struct text_map message_map_read(const void *entries, size_t count, struct arena *arena);

/* The bytes of all keys and values, as they were sent: also those of a key that is sent twice. */
size_t message_map_size(const void *entries, size_t count);

/* Sets the field (`entries` points to it) and its n_ member; `type` is the descriptor of its entries. */
void message_map_write(const struct text_map *map, struct arena *arena,
                       const ProtobufCMessageDescriptor *type, void *entries, size_t *count);

#endif
