/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volumes a connection's driver has, by its list: enough to tell later whether one of them
 * was there already.
 */
#ifndef CONNECTIONS_COPY_LISTED_IDS_H
#define CONNECTIONS_COPY_LISTED_IDS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

#define LISTED_IDS_MAX 16384

struct listed_ids {
    bool is_known;    /* false: the driver has no list, or one that is too long or cannot be read */
    uint64_t *hashes; /* of the driver's own ids (handles_hash), in the call's arena */
    size_t count;
};

/* An error is one that may be gone when the caller asks again. */
MUST_CHECK struct error *listed_ids_read(struct router *router, struct call *call,
                                         const struct connection *connection,
                                         struct listed_ids *out);

/* `id`: as the orchestrator knows it. */
MUST_CHECK struct error *listed_ids_find(struct router *router, struct call *call,
                                         const struct listed_ids *ids, const char *id, bool *found);

#endif
