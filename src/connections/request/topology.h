/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology across connections. Each driver has its own topology keys; a node reports all of them
 * together, under the names that topology_keys.h gives them. `keys` maps a driver's own key to that
 * name.
 *
 * A driver sees the terms of a requirement that use its keys. The other terms, and the `topology`
 * of the connection's file, are checked here. A driver whose keys are unknown, because no node has
 * reported any yet, sees the requirement unchanged. Snapshots are treated like volumes.
 */
#ifndef CONNECTIONS_REQUEST_TOPOLOGY_H
#define CONNECTIONS_REQUEST_TOPOLOGY_H

#include "connections/config/connection.h"
#include "proto/csi.pb-c.h"

/* Adds the segments that one connection reports for this node. */
void topology_add_node(const struct connection *connection, const struct text_map *keys,
                       struct text_map *segments, struct arena *arena);

/* NULL: there are no segments. */
Csi__V1__Topology *topology_make(const struct text_map *segments, struct arena *arena);

/* Can volumes of the connection be at this topology (NULL: anywhere), according to its file? */
bool topology_fits(const struct connection *connection, const Csi__V1__Topology *topology,
                   struct arena *arena);

/*
 * Both translate one message; csi_fields.h finds them.
 *
 * The requirement of CreateVolume and CreateSnapshot, and the topology of GetCapacity, get the
 * driver's keys. RESOURCE_EXHAUSTED: the connection serves none of the required topologies.
 */
MUST_CHECK struct error *topology_translate_in(const struct connection *connection,
                                               const struct text_map *keys, ProtobufCMessage *owner,
                                               struct arena *arena);

/*
 * The topologies of a volume or snapshot get the names that nodes report. Where the driver reports
 * none the connection's file has them. Snapshots have a topology only with `advertises_csi_1_13`.
 */
void topology_translate_out(const struct connection *connection, const struct text_map *keys,
                            bool advertises_csi_1_13, ProtobufCMessage *owner, struct arena *arena);

#endif
