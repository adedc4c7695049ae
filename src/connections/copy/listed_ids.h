/* SPDX-License-Identifier: Apache-2.0 */
/* The ids that a driver lists, as hashes: enough to tell later whether a volume existed before. */
#ifndef CONNECTIONS_COPY_LISTED_IDS_H
#define CONNECTIONS_COPY_LISTED_IDS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

#define LISTED_IDS_MAX 16384

struct listed_ids {
    bool is_known;    /* false: the driver has no list, or it is too long or unreadable */
    uint64_t *hashes; /* of the driver's own ids (hash_text), in the call's arena */
    size_t count;
};

/* Returns only errors that may pass; the others are logged, and the ids are unknown. */
MUST_CHECK struct error *listed_ids_read(struct router *router, struct call *call,
                                         const struct connection *connection,
                                         struct listed_ids *out);

/* `id` is the orchestrator's. */
MUST_CHECK struct error *listed_ids_find(struct router *router, struct call *call,
                                         const struct listed_ids *ids, const char *id, bool *found);

#endif
