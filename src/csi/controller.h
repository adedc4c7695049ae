/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller on what this node keeps itself. */
#ifndef CSI_CONTROLLER_H
#define CSI_CONTROLLER_H

#include "proto/csi.rpc.h"
#include "rpc/server/call.h"
#include "rpc/server/server.h"
#include "volumes/engine.h"

#define CONTROLLER_MOST_OVERPROVISIONING 10000
#define CONTROLLER_TOPOLOGY_KEY "topology.skycap.dev/node"

struct controller {
    struct engine *engine;
    uint64_t max_volumes_per_node; /* 0: as many as one likes */
    /*
     * Peers of CSI 1.12 need not know the capabilities that came with 1.13, and some (csi-sanity
     * 5.5) take them amiss: they are told only then. Their RPCs are served to whoever calls them.
     */
    bool tells_1_13;
    /* Up to how much of the free space GetCapacity offers to one volume; 0: 100. */
    unsigned overprovisioning_percent;
};

/* A handler's declaration. */
#define HANDLER(name, Method)                                                                      \
    struct error *name(struct call *call, const Csi__V1__##Method##Request *request,               \
                       Csi__V1__##Method##Response *reply)

/* ---- controller_call.c: what handlers ask of their call ---- */

/* How long a handler may wait for a copy, so that there is time left for the answer. */
uint64_t controller_wait_ms(const struct call *call);

/* Its context is a struct controller, as that of node and group handlers is. */
struct engine *controller_engine(const struct call *call);

/* ---- controller.c ---- */

/* Their context is a struct controller. */
extern const struct csi_v1_controller controller_handlers;

#endif
