/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC metadata: an ordered list of keys and values. A value of a key that ends in "-bin" is bytes; it is base64 on the wire and plain
 * here, once metadata_decode_binary has run over the list. Lives in an arena.
 */
#ifndef RPC_GRPC_METADATA_H
#define RPC_GRPC_METADATA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct metadata_entry {
    struct metadata_entry *next;
    const char *key; /* lower case; NUL-terminated, as the value is */
    size_t key_size;
    const char *value;
    size_t value_size;
    bool is_secret; /* its sender keeps it out of HPACK's tables */
};

struct metadata {
    struct metadata_entry *first;
    struct metadata_entry *last;
    size_t count;
};

/* Puts an entry, which lives as long as the list, at its end. */
static inline void
metadata_append(struct metadata *metadata, struct metadata_entry *entry)
{
    entry->next = NULL;
    if (metadata->last)
        metadata->last->next = entry;
    else
        metadata->first = entry;
    metadata->last = entry;
    metadata->count++;
}

/* Copies key and value into the arena. */
void metadata_add_bytes(struct metadata *metadata, struct arena *arena, const char *key,
                        size_t key_size, const void *value, size_t value_size);

/* The same, for what our own code or a user says: INVALID_ARGUMENT for a key or value that may not be sent. */
MUST_CHECK struct error *metadata_add(struct metadata *metadata, struct arena *arena,
                                      const char *key, const void *value, size_t value_size);

/* The first value of the key (lower case) as a string, or NULL. */
const char *metadata_find(const struct metadata *metadata, const char *key);
size_t metadata_count(const struct metadata *metadata, const char *key);

bool metadata_key_is_binary(const char *key, size_t key_size);

/* INTERNAL if a -bin value is no base64, RESOURCE_EXHAUSTED if more of them are joined by commas than anybody needs. */
MUST_CHECK struct error *metadata_decode_binary(struct metadata *metadata, struct arena *arena);

#endif
