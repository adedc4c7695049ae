/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches a volume of any connection to a path of this node as an orchestrator does it:
 * ControllerPublishVolume, NodeStageVolume, NodePublishVolume. On a worker.
 */
#ifndef CONNECTIONS_COPY_ATTACH_H
#define CONNECTIONS_COPY_ATTACH_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

struct attachment {
    const struct router *router;
    const struct connection_set *set;
    struct connection *connection;
    struct call *call;             /* may be a detached one */
    const Csi__V1__Volume *volume; /* its id is ours */
    const Csi__V1__VolumeCapability *capability;
    const struct text_map *secrets;
    const char *directory; /* created if missing; contains `stage` and `target` */
    bool read_only;
    bool stays; /* somebody else may have attached it: leave the controller's part */
};

/* Where a volume is attached by ControllerPublishVolume. */
enum attach_state {
    ATTACH_STATE_NEVER,     /* the driver does not attach */
    ATTACH_STATE_DETACHED,  /* nowhere */
    ATTACH_STATE_ELSEWHERE, /* not here */
    ATTACH_STATE_ATTACHED,  /* to this node, and maybe to others */
    ATTACH_STATE_UNKNOWN,   /* the driver does not tell */
};

struct attach_facts {
    enum attach_state state;
    int64_t size_bytes; /* 0: the driver does not tell */
};

MUST_CHECK struct error *attach_find_facts(const struct attachment *attachment,
                                           struct attach_facts *out);

/* Idempotent. `*path` is the directory or the block device, in the call's arena. */
MUST_CHECK struct error *attach_volume(const struct attachment *attachment, const char **path);

/* Undoes every step, also those of an attachment that failed or of another process. */
MUST_CHECK struct error *attach_detach(const struct attachment *attachment);

#endif
