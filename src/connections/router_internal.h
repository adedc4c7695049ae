/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the router. The files of a call to one connection, in the order in which it passes
 * through them:
 *
 *     router.c         finds the rule of the method and the connection of the ids
 *     forward.c        translates the request, sends it, and concludes the answer
 *     route.c          finds connections by ids; translates ids and topologies, for both
 *
 * router_create.c selects the connection of a new volume instead. The other router_*.c files answer
 * methods that concern all connections.
 */
#ifndef CONNECTIONS_ROUTER_INTERNAL_H
#define CONNECTIONS_ROUTER_INTERNAL_H

#include "connections/router.h"
#include "csi/services.h"
#include "proto/connections.rpc.h"
#include "proto/inventory.rpc.h"
#include "proto/skycap.rpc.h"
#include "rpc/server/call.h"
#include "volumes/keys.h"

struct node_announcer;
struct router_service;
struct ops;
struct topology_keys;

struct router {
    struct router_options options;
    struct router_service *services[SERVICES_COUNT];
    struct ops *ops;         /* copies across connections */
    atomic_bool has_choices; /* there may be rows of choices (choice_rows.h) or of copies */
    struct keys choosing;    /* names of volumes whose connection is being selected */
    atomic_uint plans;       /* rows of copy targets that a driver may have made */
    struct topology_keys *topology_keys;
    struct node_announcer *announcer;
};

/* The context of every handler is the router. */
static inline struct router *
router_of(const struct call *call)
{
    return call_context(call);
}

/* ---- router_identity.c ---- */
struct error *router_plugin_info(struct call *call, const void *in, void *out);
struct error *router_plugin_capabilities(struct call *call, const void *in, void *out);
struct error *router_probe(struct call *call, const void *in, void *out);
struct error *router_controller_capabilities(struct call *call, const void *in, void *out);
struct error *router_node_capabilities(struct call *call, const void *in, void *out);
struct error *router_group_capabilities(struct call *call, const void *in, void *out);

/* ---- router_node.c ---- */
struct error *router_node_info(struct call *call, const void *in, void *out);
struct error *router_storage_health(struct call *call, const void *in, void *out);

/* ---- router_create.c ---- */
struct error *router_create_volume(struct call *call, const void *in, void *out);

/* ---- router_capacity.c ---- */
struct error *router_get_capacity(struct call *call, const void *in, void *out);

/* ---- router_lists.c ---- */
struct error *router_list_volumes(struct call *call, const void *in, void *out);
struct error *router_list_snapshots(struct call *call, const void *in, void *out);
struct error *router_list_volume_health(struct call *call, const void *in, void *out);

/*
 * ---- router_connections.c, router_operations.c, router_inventory.c: their context is the router
 * too ----
 */
extern const struct skycap_v1_connections router_connections_handlers;
extern const struct skycap_v1_operations router_operations_handlers;
extern const struct skycap_v1_inventory router_inventory_handlers;

#endif
