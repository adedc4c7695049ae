/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of volumes that are GONE (rule 12): asks all members what they have of them. While one of
 * them cannot be asked, no row can end, so all wait.
 */
#ifndef VOLUMES_MOVE_GONE_H
#define VOLUMES_MOVE_GONE_H

#include "volumes/move_cluster.h"
#include "volumes/rows.h"

/* Zeroed at first. For one thread. */
struct move_gone {
    uint64_t due_ms; /* when members are asked again */
    uint64_t pause_ms;
    /* In this round: */
    struct arena arena; /* of the ids */
    const char *const *ids;
    size_t count;
    bool is_read;
    bool is_over; /* nobody is asked any more */
    bool has_waited;
    bool has_ended;
};

void move_gone_begin_round(struct move_gone *gone);
/* A volume that is GONE. What fails now is tried again in a later round. */
MUST_CHECK struct error *move_gone_look_at(struct move_gone *gone, struct engine *engine,
                                           const struct move_cluster *cluster, struct row *row,
                                           struct arena *arena);
void move_gone_end_round(struct move_gone *gone);

#endif
