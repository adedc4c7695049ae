/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume on a given connection, whatever the parameters of the request select. */
#ifndef CONNECTIONS_FORWARD_NEW_VOLUME_H
#define CONNECTIONS_FORWARD_NEW_VOLUME_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

/* Sets the parameters that the driver sees. INVALID_ARGUMENT: it cannot create volumes. */
MUST_CHECK struct error *new_volume_prepare(const struct connection *connection,
                                            Csi__V1__CreateVolumeRequest *request,
                                            struct arena *arena);

/* Does not change the request. On a worker. */
MUST_CHECK struct error *new_volume_create(const struct router *router, struct call *call,
                                           const struct connection_set *set,
                                           struct connection *connection,
                                           const Csi__V1__CreateVolumeRequest *request,
                                           Csi__V1__CreateVolumeResponse *reply);

#endif
