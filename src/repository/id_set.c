/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with linear probing: see id_set.h. */
#include "repository/id_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static size_t
place_of(const struct id_set *set, const uint8_t id[32])
{
    uint64_t hash;
    memcpy(&hash, id, sizeof hash);
    return (size_t)hash & (set->capacity - 1);
}

/* The slot of the id, or the free one where it belongs. */
static size_t
find(const struct id_set *set, const uint8_t id[32])
{
    size_t at = place_of(set, id);
    while (set->slots[at].is_used && memcmp(set->slots[at].id, id, 32) != 0)
        at = (at + 1) & (set->capacity - 1);
    return at;
}

static void
grow(struct id_set *set)
{
    struct id_set old = *set;
    set->capacity = old.capacity ? 2 * old.capacity : 64;
    set->slots = memory_zeroed(set->capacity * sizeof *set->slots);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].is_used)
            set->slots[find(set, old.slots[i].id)] = old.slots[i];
    free(old.slots);
}

bool
id_set_add(struct id_set *set, const uint8_t id[32])
{
    if (2 * set->count >= set->capacity)
        grow(set);
    struct id_set_slot *slot = &set->slots[find(set, id)];
    if (slot->is_used)
        return false;
    slot->is_used = true;
    memcpy(slot->id, id, 32);
    set->count++;
    return true;
}

bool
id_set_has(const struct id_set *set, const uint8_t id[32])
{
    return set->count && set->slots[find(set, id)].is_used;
}

/* Moves later ids of the same run into the gap, so that each stays reachable from its place. */
void
id_set_remove(struct id_set *set, const uint8_t id[32])
{
    if (!id_set_has(set, id))
        return;
    size_t mask = set->capacity - 1, gap = find(set, id);
    for (size_t at = (gap + 1) & mask; set->slots[at].is_used; at = (at + 1) & mask) {
        size_t place = place_of(set, set->slots[at].id);
        if (((at - place) & mask) >= ((at - gap) & mask)) {
            set->slots[gap] = set->slots[at];
            gap = at;
        }
    }
    set->slots[gap].is_used = false;
    set->count--;
}

void
id_set_clear(struct id_set *set)
{
    free(set->slots);
    *set = (struct id_set){0};
}
