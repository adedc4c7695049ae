/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk in front of all connections: the services of CSI as the orchestrator sees them. A request goes to the connection that its ids or its
 * parameters name; ids are translated on the way in and on the way out; what concerns all connections (lists, capabilities, the node, Probe) is asked
 * of all and put together.
 */
#ifndef CONNECTIONS_DESK_H
#define CONNECTIONS_DESK_H

#include "connections/connections.h"
#include "rpc/server/server.h"
#include "store/store.h"

struct desk;

/* All must outlive the desk. */
struct desk_options {
    struct connections *connections;
    struct store *store; /* what this process remembers: copies under way, inline volumes */
    struct store *
        shared; /* what all processes of the driver do: long handles, names of nodes, choices; maybe the same */
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
MUST_CHECK struct error *desk_open(const struct desk_options *options, struct desk **out);
/* Before the last calls are waited for: copies end, to be taken up again at the next start. */
void desk_stop(struct desk *desk);
/* NULL is fine. */
void desk_close(struct desk *desk);

/*
 * As Probe says it: as long as one connection is, or there is none. `*degraded` names those that are not, and those whose newest file is wrong,
 * "slow, fast (its file is wrong)", in the call's arena; "": there are none. Waits for what this process keeps itself, not for other drivers.
 */
bool desk_is_ready(const struct desk *desk, struct call *call, const char **degraded);

/*
 * As NodeGetInfo says it; texts are in the arena. UNAVAILABLE: a driver has not been reached yet, or the store cannot be. Any thread but the loop's.
 */
MUST_CHECK struct error *desk_describe_node(const struct desk *desk, struct arena *arena,
                                            Csi__V1__NodeGetInfoResponse *reply);

/*
 * The services of CSI; and whatever else a driver may serve: a call of a method that is not known here goes to the connection that its metadata
 * `skycap-connection` names, as it is. The desk must outlive the server.
 */
void desk_add(struct server *server, struct desk *desk, unsigned sides);

#endif
