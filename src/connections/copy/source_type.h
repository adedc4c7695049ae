/* SPDX-License-Identifier: Apache-2.0 */
/* What the source of a copy across connections is: a directory, a raw device or a file system. */
#ifndef CONNECTIONS_COPY_SOURCE_TYPE_H
#define CONNECTIONS_COPY_SOURCE_TYPE_H

#include "connections/config/connection.h"
#include "proto/csi.pb-c.h"
#include "rpc/server/call.h"

/*
 * Asks the engine that has the source: `from` may be a connection of another node. `*out` is
 * "directory", "block" or the name of the file system; "" if `from` is not one of our engines, as
 * other drivers do not tell. In the call's arena.
 */
MUST_CHECK struct error *source_type_find(struct call *call, const struct connection_set *set,
                                          struct connection *from,
                                          const Csi__V1__VolumeContentSource *content,
                                          const char **out);

#endif
