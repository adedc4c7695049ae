/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of controllers by id. One thread at a time. */
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
    char text[]; /* the id, then the address, each with a terminating NUL */
};

struct controller_table {
    struct controller **buckets; /* bucket_count is a power of two */
    size_t bucket_count;
    size_t count;
};

void controller_table_init(struct controller_table *table);

/* The table must be empty. */
void controller_table_free(struct controller_table *table);

const char *controller_address(const struct controller *controller);

/* NULL: there is none. */
struct controller *controller_table_find(const struct controller_table *table, const char *id,
                                         size_t id_size);

/* Finds the controller or inserts one. One with another address is replaced by a new one. */
struct controller *controller_table_put(struct controller_table *table, const char *id,
                                        size_t id_size, const char *address);

/* Drops the controllers for which `visit` returns true. */
void controller_table_walk(struct controller_table *table,
                           bool (*visit)(void *context, struct controller *controller),
                           void *context);

#endif
