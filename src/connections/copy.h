/* SPDX-License-Identifier: Apache-2.0 */
/* A volume of one connection made from a volume or snapshot of another. */
#ifndef CONNECTIONS_COPY_H
#define CONNECTIONS_COPY_H

#include "connections/connection.h"
#include "connections/desk_internal.h"

/* CreateVolume whose content comes from another connection. On a worker. */
MUST_CHECK struct error *copy_volume(struct call *call, const struct connection_set *set,
                                     struct connection *from, struct connection *to,
                                     const Csi__V1__CreateVolumeRequest *request,
                                     Csi__V1__CreateVolumeResponse *reply);

#endif
