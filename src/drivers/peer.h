/* SPDX-License-Identifier: Apache-2.0 */
/* Driver `peer`: a connection of another node. See peer.c. */
#ifndef DRIVERS_PEER_H
#define DRIVERS_PEER_H

#include "cluster/remote.h"
#include "drivers/driver.h"

struct peer_driver_options {
    struct driver_options driver;
    const char *node_id;             /* of the other node */
    const char *trouble;             /* why it cannot be called; NULL: it can */
    const struct text_map *topology; /* of the other node */
    const struct driver_facts *like; /* of a driver of the same kind: what it can do */
};

extern const struct driver_ops driver_peer;

/*
 * Takes the reference to the peer; NULL if there is trouble. `ops`: driver_peer, or others with the
 * functions below.
 */
struct driver *peer_driver_open(const struct driver_ops *ops,
                                const struct peer_driver_options *options, struct remote *taken);

/* ---- for driver_ops ---- */

void peer_driver_close(struct driver *driver);
MUST_CHECK struct error *peer_driver_call(struct driver *driver, struct call *call,
                                          const struct method *method,
                                          const ProtobufCMessage *request, ProtobufCMessage *reply);

#endif
