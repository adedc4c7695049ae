/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of what nodes ask each other (cluster.proto, move.proto, transfer.proto,
 * replica.proto) and of what they keep in the registry. It changes only when an older node would
 * misunderstand a newer one: added fields and methods do not change it. A node says in its
 * registration which versions it can speak; two nodes call each other if they have one in common,
 * so that a cluster can be upgraded node by node.
 */
#ifndef CLUSTER_PROTOCOL_H
#define CLUSTER_PROTOCOL_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct protocol_range {
    unsigned oldest;
    unsigned newest;
};

/* What this program speaks. In a file of its own, so that tests can link another one. */
extern const struct protocol_range protocol_own;

#define PROTOCOL_TEXT_SIZE 24

/* "1-2" */
void protocol_print(const struct protocol_range *range, char out[PROTOCOL_TEXT_SIZE]);

/*
 * Why this node and one that says `text` in its registration do not understand each other, and
 * which of the two to upgrade: "speaks version ...", to follow the name of the node. NULL: they
 * have a version in common. A `text` of NULL: a node from before there were versions, which
 * speaks 1.
 */
const char *protocol_trouble(const char *text, struct arena *arena);

/* The same as an error: UNAVAILABLE. */
MUST_CHECK struct error *protocol_check(const char *node_id, const char *text);

#endif
