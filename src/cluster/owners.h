/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns the volumes that have left their home, as rows in the cluster store. It follows the
 * rules in docs/cluster.md ("How a move works"); "The rows in the cluster store" there lists the
 * keys.
 *
 * There is one for each connection of a node. Functions may block and are safe from any thread. All
 * answer UNAVAILABLE while the registry does not answer.
 */
#ifndef CLUSTER_OWNERS_H
#define CLUSTER_OWNERS_H

#include <stdbool.h>

#include "base/log.h"
#include "store/store.h"
#include "volumes/ownership.h"

struct owners;

/* Everything but the texts must outlive the owners. */
struct owners_options {
    struct store *rows; /* of the cluster */
    struct store *own;  /* of the engine, for the ids of members (rule 11) */
    const char *connection;
    const char *node_id;
    struct claim_source claims;
    const struct log *log;
};

/* Asks for nothing yet. */
struct owners *owners_new(const struct owners_options *options);
/* NULL is fine. */
void owners_free(struct owners *owners);

/*
 * Valid as long as the owners. None of its functions calls claims.walk or waits for owners_renew,
 * so they may be called with a volume's lock held. Until owners_renew has announced this node's
 * rows to the present incarnation, all but add_member answer UNAVAILABLE.
 *
 * members: UNAVAILABLE also if a member has not announced its rows, because the ids that it knows
 * are not known yet.
 */
const struct ownership *owners_interface(struct owners *owners);

/*
 * To be called at each renewal of the registration, without any lock. Reads the incarnation, makes
 * one if there is none, and announces this node's rows if it is new (rules 8 and 9). An error may
 * be temporary: the next call begins again.
 */
MUST_CHECK struct error *owners_renew(struct owners *owners);

/*
 * The operator has removed a node: nobody waits for it any more (rule 10), on any connection. It is
 * taken back when a node of that id starts and announces its rows. A registry that has lost its
 * data has forgotten it.
 */
MUST_CHECK struct error *owners_remove_member(struct owners *owners, const char *node_id);

/* ---- for routers and doctors ---- */

/*
 * Where to look for a volume: its row in the present incarnation, whoever has announced; epoch 0 if
 * there is none, also if its owner is not settled. A hint: rule 5 needs ownership.read.
 */
MUST_CHECK struct error *owners_peek(struct store *rows, const char *connection, const char *handle,
                                     struct owner *out);

struct owner_entry {
    const char *handle;
    struct owner owner;
};

struct owner_list {
    struct owner_entry *entries; /* by handle */
    size_t count;
    bool has_more;
};

/*
 * The volumes of the connection that have a row, with handles greater than `after` (NULL: from the
 * first), at most `limit` (0: all). In the arena. A volume that never moved has no row; one whose
 * owner is not settled (rule 10) has none either.
 */
MUST_CHECK struct error *owners_list(struct owners *owners, const char *after, size_t limit,
                                     struct arena *arena, struct owner_list *out);

#endif
