/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the desk, for the files that make it up: one per topic; desk.c has the table of what goes where. */
#ifndef CONNECTIONS_DESK_INTERNAL_H
#define CONNECTIONS_DESK_INTERNAL_H

#include "connections/desk.h"
#include "csi/services.h"
#include "proto/connections.rpc.h"
#include "proto/inventory.rpc.h"
#include "proto/skycap.rpc.h"
#include "rpc/server/call.h"
#include "volumes/keys.h"

struct node_announcer;
struct desk_service;
struct ops;
struct topology_keys;

struct desk {
    struct desk_options options;
    struct desk_service *services[SERVICES_COUNT];
    struct ops *ops;         /* copies across connections */
    atomic_bool has_choices; /* there are rows about volumes that labels have chosen the place of */
    struct keys choosing;    /* names of volumes for which that is being done */
    atomic_uint plans;       /* rows of targets of copies that a driver may have made */
    struct topology_keys *topology_keys;
    struct node_announcer *announcer;
};

/* Which of a driver's lists of capabilities a method needs something of. */
enum rule_need { NEED_NOTHING, NEED_CONTROLLER, NEED_NODE, NEED_GROUP, NEED_SERVICE };

typedef struct error *desk_handler(struct call *call, const void *in, void *out);

/* How a method is answered. */
struct rule {
    const char *path;
    desk_handler *own; /* answered here, on a worker; NULL: passed to the connection of its ids */
    bool own_on_loop;  /* ... on the loop: it never waits */
    bool
        stray_is_fine; /* an id that is none of ours is answered with OK: it does not exist, as was wanted */
    bool lacking_is_fine; /* a driver that has no use for the call is taken to have done it */
    enum rule_need need;
    int capability;
    bool forgets_choice;  /* it ends a volume that labels may have chosen the place of */
    bool may_be_inline;   /* an id that is none of ours may be that of an inline volume */
    const char *required; /* fields that must be there beside the id, if no driver is to be asked */
};

const struct rule *desk_find_rule(const char *path);
struct desk *desk_of(const struct call *call);

/* ---- desk_identity.c ---- */
struct error *desk_plugin_info(struct call *call, const void *in, void *out);
struct error *desk_plugin_capabilities(struct call *call, const void *in, void *out);
struct error *desk_probe(struct call *call, const void *in, void *out);
struct error *desk_controller_capabilities(struct call *call, const void *in, void *out);
struct error *desk_node_capabilities(struct call *call, const void *in, void *out);
struct error *desk_group_capabilities(struct call *call, const void *in, void *out);

/* ---- desk_node.c ---- */
struct error *desk_node_info(struct call *call, const void *in, void *out);
struct error *desk_storage_health(struct call *call, const void *in, void *out);

/* ---- desk_create.c ---- */
struct error *desk_create_volume(struct call *call, const void *in, void *out);
/* On this connection, whatever the parameters say. */
MUST_CHECK struct error *desk_create_on(struct desk *desk, struct call *call,
                                        const struct connection_set *set,
                                        struct connection *connection,
                                        const Csi__V1__CreateVolumeRequest *request,
                                        Csi__V1__CreateVolumeResponse *reply);
/* Sets has_choices. */
void desk_look_for_choices(struct desk *desk);
/* A volume was deleted: how it was chosen where it goes is forgotten. */
MUST_CHECK struct error *desk_forget_choice(struct desk *desk, const char *volume_id,
                                            struct arena *arena);
struct error *desk_get_capacity(struct call *call, const void *in, void *out);

/* ---- desk_lists.c ---- */
struct error *desk_list_volumes(struct call *call, const void *in, void *out);
struct error *desk_list_snapshots(struct call *call, const void *in, void *out);
struct error *desk_list_volume_health(struct call *call, const void *in, void *out);

/* ---- desk_connections.c, desk_operations.c, desk_inventory.c: their context is the desk ---- */
extern const struct skycap_v1_connections desk_connections_handlers;
extern const struct skycap_v1_operations desk_operations_handlers;
extern const struct skycap_v1_inventory desk_inventory_handlers;

#endif
