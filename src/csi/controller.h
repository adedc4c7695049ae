/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller for the volumes of this node. */
#ifndef CSI_CONTROLLER_H
#define CSI_CONTROLLER_H

#include "proto/csi.rpc.h"
#include "rpc/server/call.h"
#include "rpc/server/server.h"
#include "volumes/engine.h"

#define CONTROLLER_MOST_OVERPROVISIONING 10000

/*
 * A parameter of CreateVolume that the router adds if it has chosen the connection or node, and has
 * stored the choice. It is not stored with the volume, whose handle is marked instead (handle.h).
 */
#define CONTROLLER_CHOSEN "skycap.dev/chosen"

struct health_report;
struct sender;

struct controller {
    struct engine *engine;
    uint64_t max_volumes_per_node; /* 0: unlimited */
    /*
     * Advertise the capabilities of CSI 1.13. Some peers of CSI 1.12 (csi-sanity 5.5) fail if they
     * see them. The RPCs are always served.
     */
    bool advertises_csi_1_13;
    /* How much of the free space GetCapacity offers to one volume; 0: 100. */
    unsigned overprovisioning_percent;
    _Atomic(struct sender *)
        sender; /* of what is sent to other nodes; NULL: in no cluster, or not yet */
};

/* A handler's declaration. */
#define HANDLER(name, Method)                                                                      \
    struct error *name(struct call *call, const Csi__V1__##Method##Request *request,               \
                       Csi__V1__##Method##Response *reply)

/* ---- controller_call.c ---- */

/* How long a handler may wait and still answer before the deadline. */
uint64_t controller_wait_ms(const struct call *call);

/* The call's context is a struct controller, also for node and group handlers. */
struct engine *controller_engine(const struct call *call);

/* Checks the id and reads the volume's record. */
MUST_CHECK struct error *controller_find_volume(struct call *call, const char *id,
                                                volume_record **out);
/* Also one that was lost with the node's store. */
MUST_CHECK struct error *controller_find_shown(struct call *call, const char *id,
                                               volume_record **out);

/* The health of a volume's data, and of its uses on this node. */
MUST_CHECK struct error *controller_check_health(struct engine *engine, const volume_record *volume,
                                                 struct arena *arena, struct health_report *out);

/* ---- controller.c ---- */

/* Their context is a struct controller. */
extern const struct csi_v1_controller controller_handlers;

#endif
