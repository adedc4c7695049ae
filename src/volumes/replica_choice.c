/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing nodes for copies: see replica_choice.h. */
#include "volumes/replica_choice.h"

#include <string.h>

static bool
is_zone_used(const struct replica_candidate *candidates, size_t count, const char *own_zone,
             const char *zone)
{
    if (!zone[0] || strcmp(zone, own_zone) == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        if (candidates[i].is_taken && strcmp(candidates[i].zone, zone) == 0)
            return true;
    return false;
}

struct replica_candidate *
replica_choice_make(struct replica_candidate *candidates, size_t count, const char *own_zone)
{
    struct replica_candidate *best = NULL;
    bool is_best_new = false;
    for (size_t i = 0; i < count; i++) {
        struct replica_candidate *one = &candidates[i];
        bool is_new = !is_zone_used(candidates, count, own_zone, one->zone);
        if (one->is_taken)
            continue;
        bool is_better = !best;
        if (best && is_new != is_best_new)
            is_better = is_new;
        else if (best && one->has_previous != best->has_previous)
            is_better = one->has_previous;
        else if (best)
            is_better = one->available_bytes > best->available_bytes;
        if (!is_better)
            continue;
        best = one;
        is_best_new = is_new;
    }
    return best;
}
