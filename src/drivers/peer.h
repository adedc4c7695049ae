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
    const struct driver_facts *like; /* of a driver `local` here: what engines can do */
};

extern const struct driver_ops driver_peer;

/* Takes the reference to the peer; NULL if there is trouble. */
struct driver *peer_driver_open(const struct peer_driver_options *options, struct remote *taken);

#endif
