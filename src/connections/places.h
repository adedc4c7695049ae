/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology across connections. Each driver has keys of its own for where a node is; a node tells all of them together. Where two drivers give the same
 * key different values, that of the second (by name) is told as NAME.KEY, and translated back on the way in.
 *
 * A driver is shown of a requirement what it knows the keys of; the rest, and what stands in the connection's file under topology, is judged here. What
 * is said here of volumes goes for snapshots too.
 */
#ifndef CONNECTIONS_PLACES_H
#define CONNECTIONS_PLACES_H

#include "connections/connection.h"
#include "proto/csi.pb-c.h"

/* Of this node, by all connections. */
Csi__V1__Topology *places_of_node(const struct connection_set *set, struct arena *arena);

/* Whether volumes of the connection can be where the topology says (NULL: anywhere), as far as its file tells. */
bool places_fit(const struct connection *connection, const Csi__V1__Topology *topology,
                struct arena *arena);

/* Of a new volume or snapshot: its requirement becomes what the driver is to see. RESOURCE_EXHAUSTED: none of the places that are wanted is one of the connection's. */
MUST_CHECK struct error *places_translate_in(const struct connection_set *set,
                                             const struct connection *connection,
                                             ProtobufCMessage *request, struct arena *arena);

/* As the driver is to see it; NULL: nothing that it knows. */
Csi__V1__Topology *places_translate_one_in(const struct connection_set *set,
                                           const struct connection *connection,
                                           const Csi__V1__Topology *topology, struct arena *arena);

/* Where the volumes of an answer are, wherever they stand in it: as the driver says it, or its connection's file. Snapshots are told so only to those who
   know `tells_1_13`, what CSI 1.13 has. */
void places_translate_out(const struct connection_set *set, const struct connection *connection,
                          bool tells_1_13, ProtobufCMessage *answer, struct arena *arena);

#endif
