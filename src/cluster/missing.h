/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are missing: members that somebody knows (rule 11 of docs/cluster.md), but that have
 * no registration, because the registry has lost its data, or somebody has removed the entry. They
 * may have volumes, so they stay in the table of members until they register, or the operator says
 * that they will not come back. A thread reads which they are.
 */
#ifndef CLUSTER_MISSING_H
#define CLUSTER_MISSING_H

#include "base/log.h"
#include "cluster/members.h"
#include "cluster/name_set.h"
#include "store/store.h"

struct missing;

/* Everything must outlive it. */
struct missing_options {
    struct store *rows; /* of the cluster */
    struct members *members;
    const char *node_id;
    uint32_t pause_ms; /* between looks */
    /* It has looked: all that are missing are in the table; `forgotten` are not, or are back. */
    void (*looked)(void *context, const struct name_set *forgotten, bool has_changed);
    void *context;
    const struct log *log;
};

struct missing *missing_start(const struct missing_options *options);
/* Looks at once. Any thread. */
void missing_look(struct missing *missing);
/* Returns when `looked` is not called any more. NULL is fine. */
void missing_stop(struct missing *missing);

#endif
