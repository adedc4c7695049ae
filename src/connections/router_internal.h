/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the router, for the files that make it up: one per topic; router.c has the table of what goes where. */
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
    atomic_bool has_choices; /* there are rows about volumes that labels have chosen the place of */
    struct keys choosing;    /* names of volumes for which that is being done */
    atomic_uint plans;       /* rows of targets of copies that a driver may have made */
    struct topology_keys *topology_keys;
    struct node_announcer *announcer;
};

/* Which of a driver's lists of capabilities a method needs something of. */
enum rule_need { NEED_NOTHING, NEED_CONTROLLER, NEED_NODE, NEED_GROUP, NEED_SERVICE };

typedef struct error *router_handler(struct call *call, const void *in, void *out);

/* How a method is answered. */
struct rule {
    const char *path;
    router_handler *own; /* answered here, on a worker; NULL: passed to the connection of its ids */
    bool own_on_loop;    /* ... on the loop: it never waits */
    bool unknown_id_is_ok; /* an id that is none of ours is answered with OK: it does not exist */
    bool lacking_is_ok;    /* a driver without the capability counts as having done it */
    enum rule_need need;
    int capability;
    bool forgets_choice;  /* it ends a volume that labels may have chosen the place of */
    bool may_be_inline;   /* an id that is none of ours may be that of an inline volume */
    const char *required; /* fields that must be there beside the id, if no driver is to be asked */
};

const struct rule *router_find_rule(const char *path);
struct router *router_of(const struct call *call);

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
/* On this connection, whatever the parameters say. */
MUST_CHECK struct error *router_create_on(struct router *router, struct call *call,
                                          const struct connection_set *set,
                                          struct connection *connection,
                                          const Csi__V1__CreateVolumeRequest *request,
                                          Csi__V1__CreateVolumeResponse *reply);
/* Sets has_choices. */
void router_look_for_choices(struct router *router);
/* A volume was deleted: how it was chosen where it goes is forgotten. */
MUST_CHECK struct error *router_forget_choice(struct router *router, const char *volume_id,
                                              struct arena *arena);
struct error *router_get_capacity(struct call *call, const void *in, void *out);

/* ---- router_lists.c ---- */
struct error *router_list_volumes(struct call *call, const void *in, void *out);
struct error *router_list_snapshots(struct call *call, const void *in, void *out);
struct error *router_list_volume_health(struct call *call, const void *in, void *out);

/* ---- router_connections.c, router_operations.c, router_inventory.c: their context is the router ---- */
extern const struct skycap_v1_connections router_connections_handlers;
extern const struct skycap_v1_operations router_operations_handlers;
extern const struct skycap_v1_inventory router_inventory_handlers;

#endif
