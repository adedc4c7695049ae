/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of requests: see secrets.h. */
#include "connections/request/secrets.h"

#include <string.h>

#include "connections/request/map_field.h"

/* The name of the connection, also if its file is wrong; NULL: there is none. */
static const char *
find_owner_name(const struct connection_set *set, const char *name)
{
    const struct connection *owner = connection_set_find(set, name);
    for (size_t i = 0; !owner && i < set->count; i++)
        if (strcmp(set->slots[i].name, name) == 0)
            return set->slots[i].name;
    return owner ? owner->spec->name : NULL;
}

/* The connection that a key `NAME.KEY` names; NULL: the secret is for any connection. */
static const char *
find_owner(const struct connection_set *set, const char *key, const char **rest)
{
    char name[SPEC_MAX_ALIAS + 1];
    const char *dot = strchr(key, '.');
    size_t size = dot ? (size_t)(dot - key) : 0;
    if (size == 0 || size > SPEC_MAX_ALIAS)
        return NULL;
    memcpy(name, key, size);
    name[size] = '\0';
    *rest = dot + 1;
    return find_owner_name(set, name);
}

/* Secrets that name the connection come last, so that they override the others. */
static struct text_map
filter_secrets(const struct connection_set *set, const struct connection *connection,
               const struct text_map *secrets, struct arena *arena)
{
    enum spec_secrets policy = connection->spec->secrets;
    if (policy == SPEC_SECRETS_NONE || !secrets->count)
        return (struct text_map){0};
    struct text_pair *kept = arena_alloc(arena, 2 * secrets->count * sizeof *kept);
    struct text_pair *own = kept + secrets->count;
    size_t kept_count = 0, own_count = 0;
    for (size_t i = 0; i < secrets->count; i++) {
        const struct text_pair *pair = &secrets->pairs[i];
        const char *rest = "";
        const char *owner = find_owner(set, pair->key, &rest);
        if (owner && strcmp(owner, connection->spec->name) == 0)
            own[own_count++] = (struct text_pair){rest, pair->value};
        else if (!owner && policy == SPEC_SECRETS_ALL)
            kept[kept_count++] = *pair;
    }
    memmove(kept + kept_count, own, own_count * sizeof *own);
    return text_map_of(kept, kept_count + own_count, arena);
}

struct text_map
secrets_of(const struct connection_set *set, const struct connection *connection,
           const struct text_map *secrets, struct arena *arena)
{
    struct text_map own = {0};
    for (size_t i = 0; i < secrets->count; i++) {
        const struct text_pair *pair = &secrets->pairs[i];
        const char *rest;
        const char *owner = find_owner(set, pair->key, &rest);
        if (owner && strcmp(owner, connection->spec->name) == 0)
            text_map_set(&own, arena, pair->key, pair->value);
    }
    return own;
}

void
secrets_translate_in(const struct connection_set *set, const struct connection *connection,
                     ProtobufCMessage *request, struct arena *arena)
{
    struct map_field field;
    if (!map_field_find(request, "secrets", &field) || *field.count == 0)
        return;
    struct text_map secrets = map_field_read(&field, arena);
    struct text_map kept = filter_secrets(set, connection, &secrets, arena);
    map_field_write(&field, &kept, arena);
}
