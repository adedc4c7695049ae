/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array of names: see name_set.h. */
#include "cluster/name_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The position of the name, or where it would be. */
static size_t
find(const struct name_set *set, const char *name, bool *found)
{
    size_t low = 0, high = set->count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(set->names[middle], name);
        *found = order == 0;
        if (*found)
            low = middle;
        else if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void
name_set_add(struct name_set *set, const char *name)
{
    bool found;
    size_t at = find(set, name, &found);
    if (found)
        return;
    if (set->count == set->capacity) {
        set->capacity = set->capacity ? 2 * set->capacity : 16;
        set->names = memory_resize(set->names, set->capacity * sizeof *set->names);
    }
    memmove(&set->names[at + 1], &set->names[at], (set->count - at) * sizeof *set->names);
    set->names[at] = memory_string(name);
    set->count++;
}

void
name_set_add_all(struct name_set *set, const struct name_set *names)
{
    for (size_t i = 0; i < names->count; i++)
        name_set_add(set, names->names[i]);
}

bool
name_set_has(const struct name_set *set, const char *name)
{
    bool found;
    find(set, name, &found);
    return found;
}

void
name_set_clear(struct name_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->names[i]);
    free(set->names);
    *set = (struct name_set){0};
}
