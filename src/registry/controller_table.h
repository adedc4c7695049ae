/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of controllers by id, and of nodes by "nodes/ID": what their paths have before
 * "/address". One thread at a time.
 */
#ifndef REGISTRY_CONTROLLER_TABLE_H
#define REGISTRY_CONTROLLER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/client/channel.h"

struct controller {
    struct controller *next;
    struct channel *channel; /* NULL: not called yet */
    uint64_t revision;
    uint64_t used_at; /* of the channel */
    int64_t registered_ms;
    int64_t expires_ms; /* 0: never; of a tombstone: when to drop it */
    uint32_t hash;
    uint32_t list; /* the last list that it was in */
    bool is_tombstone;
    bool is_expiry_told;
    bool has_news; /* something was heard of it since the last call */
    uint8_t id_size;
    uint32_t attributes_size;
    uint64_t told; /* what watches were told of it last, as a hash; 0: nothing, or its expiry */
    char text[];   /* the id, then the address, each with a terminating NUL, then the attributes */
};

/* What it has announced. */
struct announced {
    const char *address;
    const uint8_t *attributes; /* packed; compared byte by byte */
    size_t attributes_size;
};

struct controller_table {
    struct controller **buckets; /* bucket_count is a power of two */
    size_t bucket_count;
    size_t count;
};

void controller_table_init(struct controller_table *table);

/* The table must be empty. */
void controller_table_free(struct controller_table *table);

struct announced controller_announced(const struct controller *controller);
bool controller_is_node(const struct controller *controller);

/* NULL: there is none. */
struct controller *controller_table_find(const struct controller_table *table, const char *id,
                                         size_t id_size);

/* Finds the controller or inserts one. One that has announced something else is replaced. */
struct controller *controller_table_put(struct controller_table *table, const char *id,
                                        size_t id_size, const struct announced *announced);

/* Drops the controllers for which `visit` returns true. */
void controller_table_walk(struct controller_table *table,
                           bool (*visit)(void *context, struct controller *controller),
                           void *context);

#endif
