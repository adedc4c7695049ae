/* SPDX-License-Identifier: Apache-2.0 */
/* A node announces its rows to a new incarnation of the registry (rules 8, 9 and 11). */
#ifndef CLUSTER_OWNER_ANNOUNCE_H
#define CLUSTER_OWNER_ANNOUNCE_H

#include "cluster/owner_rows.h"

/*
 * Announces everything, unless this was done before in this incarnation. If the node was removed,
 * it is taken back. After an error some rows may have been announced, and it can be repeated.
 */
MUST_CHECK struct error *owner_announce(const struct owners_options *options,
                                        const struct owner_rows *rows);

#endif
