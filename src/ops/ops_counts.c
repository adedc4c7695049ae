/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of operations by kind, for metrics: see ops.h. */
#include <stdio.h>
#include <string.h>

#include "ops/ops_internal.h"

size_t
ops_find_kind(struct ops *ops, const char *kind)
{
    size_t at = 0;
    while (at < ops->kind_count && strcmp(ops->ended[at].kind, kind) != 0)
        at++;
    if (at < ops->kind_count)
        return at;
    bool has_room = at < OPS_MOST_KINDS && strlen(kind) < OPS_KIND_SIZE;
    if (!has_room)
        at = OPS_MOST_KINDS;
    snprintf(ops->ended[at].kind, OPS_KIND_SIZE, "%s", has_room ? kind : OPS_OTHER_KIND);
    ops->kind_count += has_room;
    return at;
}

static void
add(struct ops_counts *counts, const operation_record *record)
{
    counts->queued += record->phase == OPERATION_PHASE(QUEUED);
    counts->working += record->phase == OPERATION_PHASE(WORKING);
    counts->waiting += record->phase == OPERATION_PHASE(WAITING);
    counts->stalled += ops_is_stalled(record);
}

static struct ops_counts
counts_of(const struct ops_ended *ended)
{
    struct ops_counts counts = {.succeeded = ended->counts[OPERATION_STATE(SUCCEEDED)],
                                .failed = ended->counts[OPERATION_STATE(FAILED)],
                                .cancelled = ended->counts[OPERATION_STATE(CANCELLED)]};
    memcpy(counts.kind, ended->kind, sizeof counts.kind);
    return counts;
}

size_t
ops_count(struct ops *ops, struct ops_counts out[OPS_MOST_KINDS + 1])
{
    struct ops_counts all[OPS_MOST_KINDS + 1] = {0};
    size_t count = 0;
    pthread_mutex_lock(&ops->lock);
    for (const struct operation *o = ops->unfinished; o; o = o->next)
        add(&all[ops_find_kind(ops, o->record.kind)], &o->record);
    for (size_t i = 0; i <= OPS_MOST_KINDS; i++) {
        if (!ops->ended[i].kind[0])
            continue;
        out[count] = counts_of(&ops->ended[i]);
        out[count].queued = all[i].queued;
        out[count].working = all[i].working;
        out[count].waiting = all[i].waiting;
        out[count++].stalled = all[i].stalled;
    }
    pthread_mutex_unlock(&ops->lock);
    return count;
}
