/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume of any connection at a path of this node, as an orchestrator would bring it there:
 * attached, staged, published. On a worker.
 */
#ifndef CONNECTIONS_ATTACH_H
#define CONNECTIONS_ATTACH_H

#include "connections/connection.h"
#include "connections/router_internal.h"

struct attachment {
    const struct router *router;
    const struct connection_set *set;
    struct connection *connection;
    struct call *call;             /* on whose behalf; maybe a detached one */
    const Csi__V1__Volume *volume; /* its id is ours */
    const Csi__V1__VolumeCapability *capability;
    const struct text_map *secrets;
    const char *directory; /* made if missing; `stage` and `target` in it */
    bool read_only;
    bool stays; /* attached, when all else is undone: it was so before */
};

/* Whether somebody has attached it to this node already, as far as its driver tells. */
MUST_CHECK struct error *attach_find_out(const struct attachment *attachment, bool *is_attached);

/* Done again it does nothing. `*path`: the directory, or the block device, in the call's arena. */
MUST_CHECK struct error *attach_volume(const struct attachment *attachment, const char **path);

/* Undoes as much as there is, also of an attachment that failed half way or in another process. */
MUST_CHECK struct error *attach_undo(const struct attachment *attachment);

#endif
