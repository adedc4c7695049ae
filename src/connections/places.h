/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology across connections. Each driver has keys of its own for where a node is; a node tells all of them together, by the names that topology_keys.h has
 * for them: `keys`, the driver's own key with what it is told as.
 *
 * A driver is shown of a requirement what is told by its keys; the rest, and what stands in the connection's file under topology, is judged here. Where its keys are
 * not known, because no node has told any yet, it is shown the requirement as it is. What is said here of volumes goes for snapshots too.
 */
#ifndef CONNECTIONS_PLACES_H
#define CONNECTIONS_PLACES_H

#include "connections/connection.h"
#include "proto/csi.pb-c.h"

/* Adds where this node is to what is told of it, by one connection. */
void places_add_node(const struct connection *connection, const struct text_map *keys,
                     struct text_map *told, struct arena *arena);

/* NULL: nothing is told. */
Csi__V1__Topology *places_make(const struct text_map *told, struct arena *arena);

/* Whether volumes of the connection can be where the topology says (NULL: anywhere), as far as its file tells. */
bool places_fit(const struct connection *connection, const Csi__V1__Topology *topology,
                struct arena *arena);

/*
 * Of a new volume or snapshot its requirement, of a question for capacity its place, becomes what the driver is to see. RESOURCE_EXHAUSTED: none of the places
 * that are wanted is one of the connection's.
 */
MUST_CHECK struct error *places_translate_in(const struct connection *connection,
                                             const struct text_map *keys, ProtobufCMessage *request,
                                             struct arena *arena);

/* Where the volumes of an answer are, wherever they stand in it: as the driver says it, or its connection's file. Snapshots are told so only to those who
   know `tells_1_13`, what CSI 1.13 has. */
void places_translate_out(const struct connection *connection, const struct text_map *keys,
                          bool tells_1_13, ProtobufCMessage *answer, struct arena *arena);

#endif
