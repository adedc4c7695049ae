/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC metadata: an ordered list of keys and values, allocated in an arena. Values of keys that end
 * in "-bin" are bytes: base64 on the wire, decoded here by metadata_decode_binary.
 */
#ifndef RPC_GRPC_METADATA_H
#define RPC_GRPC_METADATA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct metadata_entry {
    struct metadata_entry *next;
    const char *key; /* lower case; key and value are NUL-terminated */
    size_t key_size;
    const char *value;
    size_t value_size;
    bool is_secret; /* the sender keeps it out of HPACK tables */
};

struct metadata {
    struct metadata_entry *first;
    struct metadata_entry *last;
    size_t count;
};

/* Appends an entry, which must live as long as the list. */
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

/* The same for our own or user input. INVALID_ARGUMENT for a key or value that must not be sent. */
MUST_CHECK struct error *metadata_add(struct metadata *metadata, struct arena *arena,
                                      const char *key, const void *value, size_t value_size);

/* Returns the first value of the key (lower case) as a string, or NULL. */
const char *metadata_find(const struct metadata *metadata, const char *key);
size_t metadata_count(const struct metadata *metadata, const char *key);

bool metadata_key_is_binary(const char *key, size_t key_size);

/*
 * INTERNAL: a -bin value is not base64. RESOURCE_EXHAUSTED: too many values are joined by commas.
 */
MUST_CHECK struct error *metadata_decode_binary(struct metadata *metadata, struct arena *arena);

#endif
