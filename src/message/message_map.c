/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of type map<string,string>: see message_map.h. */
#include "message/message_map.h"

#include <string.h>

struct entry {
    ProtobufCMessage base;
    char *key;
    char *value;
};

size_t
message_map_size(const void *entries, size_t count)
{
    size_t size = 0;
    struct entry *const *list = entries;
    for (size_t i = 0; i < count; i++)
        size += strlen(list[i]->key) + strlen(list[i]->value);
    return size;
}

struct text_map
message_map_read(const void *entries, size_t count, struct arena *arena)
{
    if (!count)
        return (struct text_map){0};
    struct entry *const *list = entries;
    struct text_pair *pairs = arena_alloc(arena, count * sizeof *pairs);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct text_pair){list[i]->key, list[i]->value};
    return text_map_of(pairs, count, arena);
}

void
message_map_write(const struct text_map *map, struct arena *arena,
                  const ProtobufCMessageDescriptor *type, void *entries, size_t *count)
{
    struct entry **list = arena_alloc(arena, map->count * sizeof *list);
    for (size_t i = 0; i < map->count; i++) {
        list[i] = arena_alloc(arena, type->sizeof_message);
        protobuf_c_message_init(type, list[i]);
        list[i]->key = (char *)map->pairs[i].key;
        list[i]->value = (char *)map->pairs[i].value;
    }
    memcpy(entries, &list, sizeof list);
    *count = map->count;
}
