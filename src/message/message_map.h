/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of type map<string,string>. protobuf-c generates a separate type for the entries of each
 * such field, all with the same layout: base, key, value. These functions work for all of them.
 */
#ifndef MESSAGE_MAP_H
#define MESSAGE_MAP_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/text_map.h"

/*
 * `entries` and `count` are the field and its n_ member. The result points into the message. If a
 * key was sent twice, the last one counts.
 */
struct text_map message_map_read(const void *entries, size_t count, struct arena *arena);

/* Total bytes of all keys and values as sent, including duplicate keys. */
size_t message_map_size(const void *entries, size_t count);

/*
 * Sets the field (`entries` points to it) and its n_ member. `type` is the descriptor of the
 * entries.
 */
void message_map_write(const struct text_map *map, struct arena *arena,
                       const ProtobufCMessageDescriptor *type, void *entries, size_t *count);

#endif
