/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of ids or names in memory. They are results of SHA-256, so their first bytes are a hash.
 * Not thread safe.
 */
#ifndef REPOSITORY_ID_SET_H
#define REPOSITORY_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_set_slot {
    bool is_used;
    uint8_t id[32];
};

struct id_set {
    struct id_set_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* False: it was there. */
bool id_set_add(struct id_set *set, const uint8_t id[32]);
bool id_set_has(const struct id_set *set, const uint8_t id[32]);
void id_set_remove(struct id_set *set, const uint8_t id[32]);
/* The set is empty and usable. */
void id_set_clear(struct id_set *set);

#endif
