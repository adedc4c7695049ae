/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the router. A call to one connection passes through
 *
 *     router.c             finds the rule of the method and the connection of the ids
 *     forward/forward.c    translates the request, sends it, and concludes the answer
 *     forward/route.c      finds connections by ids and translates ids and topologies, for both
 *
 * router_create.c selects the connection of a new volume instead. The other router_*.c files answer
 * methods that concern all connections.
 */
#ifndef CONNECTIONS_ROUTER_ROUTER_INTERNAL_H
#define CONNECTIONS_ROUTER_ROUTER_INTERNAL_H

#include "connections/forward/router_state.h"
#include "connections/router/merged_list.h"
#include "connections/router/router.h"
#include "proto/cluster.rpc.h"
#include "proto/connections.rpc.h"
#include "proto/inventory.rpc.h"
#include "proto/move.rpc.h"
#include "proto/objects.rpc.h"
#include "proto/replica.rpc.h"
#include "proto/repositories.rpc.h"
#include "proto/skycap.rpc.h"
#include "proto/transfer.rpc.h"

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

/* ---- router_draining.c ---- */
/* Whether this node was being drained before it was started. */
MUST_CHECK struct error *router_read_draining(struct router *router);
/* Durable when it returns; the other nodes are told soon. */
MUST_CHECK struct error *router_set_draining(struct router *router, bool is_draining);

/* ---- router_forget.c ---- */
MUST_CHECK struct error *router_forget_node(struct call *call,
                                            const Skycap__V1__ForgetNodeRequest *request,
                                            Skycap__V1__ForgetNodeReply *reply);

/* ---- router_volumes.c ---- */
struct forward;
struct route;
/* Forwards the call to the node that has its volume. On a worker. */
MUST_CHECK struct error *router_run_volume(struct forward *f);
/*
 * The home is not a node of the cluster any more, or no node that answers has the volume. Takes the
 * error that tells so; `route->own` is this node's connection.
 */
MUST_CHECK struct error *router_run_lost(struct forward *f, const struct route *route,
                                         struct error *error);

/* ---- router_groups.c ---- */
/* CreateVolumeGroupSnapshot, in a cluster: to the node that has all volumes. On a worker. */
MUST_CHECK struct error *router_run_group(struct forward *f);

/* ---- router_recover.c ---- */
struct error *router_recover_volume(struct call *call,
                                    const Skycap__V1__RecoverVolumeRequest *request,
                                    Skycap__V1__RecoverVolumeReply *reply);

/* ---- router_create.c ---- */
struct error *router_create_volume(struct call *call, const void *in, void *out);

/* ---- router_capacity.c ---- */
struct error *router_get_capacity(struct call *call, const void *in, void *out);

/* ---- router_lists.c ---- */
/* ListVolumes and ControllerListVolumeHealth. */
struct error *router_list(struct call *call, const void *request, void *reply);
struct error *router_list_snapshots(struct call *call, const void *request, void *reply);

/*
 * Answers the list's call. Any list will do whose request has max_entries and starting_token, and
 * whose reply has a repeated field and next_token. Sets the list's log.
 */
MUST_CHECK struct error *router_run_list(struct merged_list *list, size_t limit,
                                         const ProtobufCMessage *request, ProtobufCMessage *reply);

/* For merged_list.ask: a page from a driver that serves the method of the list's call itself. */
MUST_CHECK struct error *router_ask_for_page(const struct merged_list *list,
                                             struct connection *connection,
                                             ProtobufCMessage *request, const char *token,
                                             size_t most, struct list_page *out);

/* ---- router_repositories.c ---- */

/* Metrics of this node's drills. */
void router_print_drills(struct router *router, struct buffer *out);

/* ---- router_translation.c ---- */

/*
 * Translates the ids of an engine's operation to those that the orchestrator knows, and tells its
 * node. NULL: the operation is the router's own, and has such ids already.
 */
void router_translate_operation(const struct router *router, const struct connection *connection,
                                struct arena *arena, Skycap__V1__Operation *message);

/* The same for the operations of a snapshot's exports. The snapshot's id is translated already. */
void router_translate_exports(Skycap__V1__SnapshotInfo *info, struct arena *arena);

/* ---- router_watch.c ---- */

/*
 * Sends the changes of one operation until it ends. `id` is the engine's; without a connection it
 * is the router's.
 */
MUST_CHECK struct error *router_watch_operation(struct call *call, struct connection *connection,
                                                const char *id);

/* Sends the changes of all operations until the client goes. */
MUST_CHECK struct error *router_watch_operations(struct call *call);

/* ---- their context is the router, too ---- */
extern const struct skycap_v1_objects router_objects_handlers;
extern const struct skycap_v1_peer router_peer_handlers;
extern const struct skycap_v1_transfer router_transfer_handlers;
extern const struct skycap_v1_moves router_moves_handlers;
extern const struct skycap_v1_nodes router_nodes_handlers;
extern const struct skycap_v1_repositories router_repositories_handlers;
extern const struct skycap_v1_replicas router_replicas_handlers;
extern const struct skycap_v1_connections router_connections_handlers;
extern const struct skycap_v1_operations router_operations_handlers;
extern const struct skycap_v1_inventory router_inventory_handlers;

#endif
