/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router in front of all connections: the CSI services as the orchestrator sees them. A request
 * goes to the connection that its ids or its parameters name. The router translates ids in both
 * directions. Calls that concern all connections (lists, capabilities, the node, Probe) go to all
 * of them, and the router merges the answers.
 */
#ifndef CONNECTIONS_ROUTER_H
#define CONNECTIONS_ROUTER_H

#include "connections/connections.h"
#include "rpc/server/server.h"
#include "store/store.h"

struct router;

/* All must outlive the router. */
struct router_options {
    struct connections *connections;
    struct store *store; /* of this process: copies under way, inline volumes */
    /* Of all processes of the driver: long handles, names of nodes, choices. May be `store`. */
    struct store *shared;
    const char *data_directory;
    const char *driver_name;
    const char *node_id;
    bool is_node;                 /* the node side is served */
    const char *instance;         /* as the drivers tell it to their children */
    bool tells_1_13;              /* capabilities that came with CSI 1.13 */
    struct fact_changes *changes; /* as the connections tell them */
    struct runtime *runtime;
    const struct log *log;
};

/* Goes on with copies that a crash has interrupted. */
MUST_CHECK struct error *router_open(const struct router_options *options, struct router **out);
/* Stops the copies; the next start resumes them. Call it before waiting for the last calls. */
void router_stop(struct router *router);
/* NULL is fine. */
void router_close(struct router *router);

/*
 * The answer to Probe: true if there is no connection, or at least one is ready. `*degraded` names
 * the others, "slow, fast (its file is wrong)", in the call's arena; "" if there are none. Waits
 * for the local store, never for another driver.
 */
bool router_is_ready(const struct router *router, struct call *call, const char **degraded);

/*
 * The answer to NodeGetInfo; texts are in the arena. UNAVAILABLE: a driver has not been reached
 * yet, or the store cannot be. Any thread but the loop's.
 */
MUST_CHECK struct error *router_describe_node(const struct router *router, struct arena *arena,
                                              Csi__V1__NodeGetInfoResponse *reply);

/*
 * Adds the CSI services of these `sides`, and a fallback: a call of an unknown method goes
 * unchanged to the connection that its metadata `skycap-connection` names. The router must outlive
 * the server.
 */
void router_add(struct server *server, struct router *router, unsigned sides);

#endif
