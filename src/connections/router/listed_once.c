/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that are listed once: see listed_once.h. A table with open addressing, at most half full. */
#include "connections/router/listed_once.h"

#include <string.h>

#include "base/hash.h"

struct slot {
    const char *id; /* NULL: free */
    size_t at;
};

struct listed_once {
    size_t mask;
    struct slot slots[];
};

struct listed_once *
listed_once_new(size_t most, struct arena *arena)
{
    size_t count = 2;
    while (count < 2 * most)
        count *= 2;
    struct listed_once *once = arena_zeroed(arena, sizeof *once + count * sizeof *once->slots);
    once->mask = count - 1;
    return once;
}

bool
listed_once_add(struct listed_once *once, const char *id, size_t *at)
{
    size_t i = hash_text(id) & once->mask;
    for (; once->slots[i].id; i = (i + 1) & once->mask) {
        if (strcmp(once->slots[i].id, id) != 0)
            continue;
        *at = once->slots[i].at;
        return false;
    }
    once->slots[i] = (struct slot){id, *at};
    return true;
}
