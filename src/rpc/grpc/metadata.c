/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC metadata: see metadata.h. */
#include "rpc/grpc/metadata.h"

#include <string.h>

#include "base/base64.h"
#include "base/buffer.h"
#include "rpc/grpc/grpc_text.h"

/*
 * In memory a value takes a hundred times the bytes of its comma on the wire, so the limit on
 * header bytes is not enough.
 */
#define MAX_JOINED_VALUES 256u

static void
copy_with_end(char *to, const void *bytes, size_t size)
{
    if (size)
        memcpy(to, bytes, size);
    to[size] = '\0';
}

/* The entry, its key and its value are one allocation. */
void
metadata_add_bytes(struct metadata *metadata, struct arena *arena, const char *key, size_t key_size,
                   const void *value, size_t value_size)
{
    struct metadata_entry *entry = arena_alloc(arena, sizeof *entry + key_size + value_size + 2);
    char *copy = (char *)(entry + 1);
    *entry = (struct metadata_entry){
        .key = copy,
        .key_size = key_size,
        .value = copy + key_size + 1,
        .value_size = value_size,
    };
    copy_with_end(copy, key, key_size);
    copy_with_end(copy + key_size + 1, value, value_size);
    metadata_append(metadata, entry);
}

struct error *
metadata_add(struct metadata *metadata, struct arena *arena, const char *key, const void *value,
             size_t value_size)
{
    size_t key_size = strlen(key);
    if (!grpc_text_is_valid_metadata_key(key, key_size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "metadata key \"%s\": use a-z, 0-9, '_', '-' and '.', and no grpc- prefix",
                         key);
    if (!metadata_key_is_binary(key, key_size) &&
        !grpc_text_is_valid_metadata_value(value, value_size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "metadata \"%s\": the value must be printable ASCII without leading or "
                         "trailing spaces; use a key that ends in -bin for other bytes",
                         key);
    metadata_add_bytes(metadata, arena, key, key_size, value, value_size);
    return NULL;
}

static struct metadata_entry *
find_key(struct metadata_entry *entry, const char *key)
{
    while (entry && strcmp(entry->key, key) != 0)
        entry = entry->next;
    return entry;
}

const char *
metadata_find(const struct metadata *metadata, const char *key)
{
    struct metadata_entry *entry = find_key(metadata->first, key);
    return entry ? entry->value : NULL;
}

size_t
metadata_count(const struct metadata *metadata, const char *key)
{
    size_t count = 0;
    struct metadata_entry *entry = find_key(metadata->first, key);
    for (; entry; entry = find_key(entry->next, key))
        count++;
    return count;
}

bool
metadata_key_is_binary(const char *key, size_t key_size)
{
    return key_size >= 4 && memcmp(key + key_size - 4, "-bin", 4) == 0;
}

/*
 * HTTP allows intermediaries to join the values of a key with commas. Moves everything after the
 * first comma into a new entry. Returns false if there is no comma.
 */
static bool
split_joined(struct metadata *metadata, struct arena *arena, struct metadata_entry *entry)
{
    const char *comma = memchr(entry->value, ',', entry->value_size);
    if (!comma)
        return false;
    struct metadata_entry *rest = arena_alloc(arena, sizeof *rest);
    *rest = *entry;
    entry->value_size = (size_t)(comma - entry->value);
    entry->value = arena_copy(arena, entry->value, entry->value_size);
    rest->value = comma + 1;
    rest->value_size -= entry->value_size + 1;
    entry->next = rest;
    if (metadata->last == entry)
        metadata->last = rest;
    metadata->count++;
    return true;
}

struct error *
metadata_decode_binary(struct metadata *metadata, struct arena *arena)
{
    size_t joined = 0;
    for (struct metadata_entry *entry = metadata->first; entry; entry = entry->next) {
        if (!metadata_key_is_binary(entry->key, entry->key_size))
            continue;
        if (split_joined(metadata, arena, entry) && ++joined > MAX_JOINED_VALUES)
            return error_new(CODE_RESOURCE_EXHAUSTED,
                             "metadata \"%s\": more than %u values are joined by commas",
                             entry->key, MAX_JOINED_VALUES);
        struct buffer plain AUTO(buffer_clear) = {0};
        if (!base64_decode(entry->value, entry->value_size, &plain))
            return error_new(CODE_INTERNAL, "metadata \"%s\" is not valid base64", entry->key);
        entry->value = arena_copy(arena, plain.bytes, plain.size);
        entry->value_size = plain.size;
    }
    return NULL;
}
