/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a router: see router.h. */
#ifndef CONNECTIONS_FORWARD_ROUTER_STATE_H
#define CONNECTIONS_FORWARD_ROUTER_STATE_H

#include <limits.h>

#include "connections/config/connections.h"
#include "csi/services.h"
#include "rpc/server/call.h"
#include "volumes/name_locks.h"

struct cluster;
struct copied_sources;
struct drill_turns;
struct node_announcer;
struct places;
struct router_service;
struct ops;
struct topology_keys;

struct router {
    const char *driver_name;
    const char *node_id;
    const struct repository_places *repositories; /* NULL: none */
    struct drill_turns *turns;                    /* of their drills; NULL: no repositories */
    bool is_node;                                 /* the node side is served */
    bool advertises_csi_1_13;                     /* capabilities that came with CSI 1.13 */
    bool has_files;                               /* --connections */
    struct runtime *runtime;
    const struct log *log;
    char data_directory[PATH_MAX];
    char instance[DRIVER_INSTANCE_SIZE]; /* unique id, sent with calls to find loops */
    struct store *store;                 /* of this process: copies, inline volumes */
    struct store *shared; /* of all processes: long handles, node ids, choices; may be `store` */
    struct fact_changes *changes;
    struct connections *connections;
    struct cluster *cluster;           /* NULL: this node is alone */
    struct places *places;             /* of a cluster: where volumes are */
    struct seen_volumes *seen_volumes; /* of a cluster: those of other nodes */
    struct router_service *services[SERVICES_COUNT];
    struct ops *ops;            /* copies across connections */
    atomic_bool has_choices;    /* `store` may have rows of choices (choice_rows.h) or of copies */
    struct name_locks choosing; /* names of volumes whose connection is being selected */
    atomic_uint plans;          /* rows of copy targets that a driver may have made */
    struct topology_keys *topology_keys;
    struct copied_sources *sources; /* volumes that copies read themselves */
    struct node_announcer *announcer;
    atomic_uint puts;        /* of objects, by other nodes, in progress */
    atomic_bool is_draining; /* no new volumes are placed on this node */
};

/* The context of every handler is the router. */
static inline struct router *
router_of(const struct call *call)
{
    return call_context(call);
}

#endif
