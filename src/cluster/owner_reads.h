/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of owners, and what a node has to know for them: the incarnation that it has announced its
 * rows to, and whether all members have. Functions are safe from any thread.
 */
#ifndef CLUSTER_OWNER_READS_H
#define CLUSTER_OWNER_READS_H

#include <pthread.h>

#include "cluster/member_rows.h"
#include "cluster/owner_rows.h"

struct owner_reads {
    struct store *store;
    const char *connection;
    const char *node_id;

    pthread_mutex_t lock;               /* for the rest; nobody waits while it is held */
    char incarnation[INCARNATION_SIZE]; /* that this node has announced to; "": to none */
    bool is_complete;                   /* all its members have announced */
    struct name_set claimed;            /* then: the handles of volumes with claims */
};

/* The texts must outlive it. */
void owner_reads_init(struct owner_reads *reads, struct store *store, const char *connection,
                      const char *node_id);
void owner_reads_clear(struct owner_reads *reads);

/* This node has announced its rows to the incarnation; "": it has yet to do it. */
void owner_reads_set_incarnation(struct owner_reads *reads, const char *incarnation);
bool owner_reads_is_in(struct owner_reads *reads, const char *incarnation);

/* One incarnation, for one or more reads. */
struct owner_view {
    struct owner_rows rows;
    bool is_complete;
};

/* UNAVAILABLE: this node has not announced its rows. */
MUST_CHECK struct error *owner_reads_open(struct owner_reads *reads, struct owner_view *out);
/* What was read in the view is true only if this succeeds afterwards (rule 8). */
MUST_CHECK struct error *owner_reads_check(const struct owner_view *view);

/*
 * Opens a view, reads the owner, settles the volume if that is possible (rule 10), and checks the
 * view. UNAVAILABLE: it is not settled.
 */
MUST_CHECK struct error *owner_reads_settled(struct owner_reads *reads, const char *handle,
                                             struct owner_view *view, struct owner_row *out);

/* All members. UNAVAILABLE: one has not announced its rows. Clear it also then. */
MUST_CHECK struct error *owner_reads_members(const struct owner_reads *reads,
                                             const struct owner_view *view,
                                             struct member_rows *out);

#endif
