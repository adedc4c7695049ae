/* SPDX-License-Identifier: Apache-2.0 */
/* Which node gets the next copy of a snapshot. */
#ifndef VOLUMES_REPLICA_CHOICE_H
#define VOLUMES_REPLICA_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replica_candidate {
    const char *node_id;
    const char *zone; /* "": none is configured */
    int64_t available_bytes;
    bool has_previous; /* it has a copy of an earlier snapshot: only the difference is sent */
    bool is_taken;     /* it has this one, or fetches it */
};

/*
 * The best of those that are not taken: in a zone that has no copy yet, then one that has an
 * earlier snapshot, then the one with the most room; NULL: none is left. `own_zone` is that of the
 * node that took the snapshot.
 */
struct replica_candidate *replica_choice_make(struct replica_candidate *candidates, size_t count,
                                              const char *own_zone);

#endif
