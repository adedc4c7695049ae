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
#ifndef CONNECTIONS_ROUTER_ROUTER_INTERNAL_H
#define CONNECTIONS_ROUTER_ROUTER_INTERNAL_H

#include "connections/forward/router_state.h"
#include "connections/router/router.h"
#include "proto/connections.rpc.h"
#include "proto/inventory.rpc.h"
#include "proto/skycap.rpc.h"

/* ---- router.c ---- */
void router_make_services(struct router *router);
void router_free_services(struct router *router);

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
