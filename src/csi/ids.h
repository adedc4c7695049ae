/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids in CSI messages: v:CONNECTION/HANDLE for volumes, s: for snapshots, g: for groups. At most
 * 128 bytes.
 */
#ifndef CSI_IDS_H
#define CSI_IDS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* The connection of the node's own volumes. */
#define IDS_LOCAL "local"

/* The topology key of the node's id. */
#define IDS_TOPOLOGY_NODE "topology.skycap.dev/node"

enum id_kind { ID_VOLUME = 'v', ID_SNAPSHOT = 's', ID_GROUP = 'g' };

char *ids_print(enum id_kind kind, const char *handle, struct arena *arena);

/* The handle in an id of this node; NULL for any other text, which is an unknown id. */
const char *ids_handle(enum id_kind kind, const char *id);

/*
 * The same for the id of an operation, which may have a dot and more behind the handle: an export
 * is s:local/HANDLE.REPOSITORY.
 */
const char *ids_operation(enum id_kind kind, const char *id);

/* As ids_handle; NOT_FOUND if there is none. */
MUST_CHECK struct error *ids_find_handle(enum id_kind kind, const char *id, const char **handle);

/*
 * Reads where a page of a list begins: `*after` is the handle in the token, or NULL for the first
 * page. ABORTED: the token is not an id of this kind. INVALID_ARGUMENT: `max_entries` is negative.
 */
MUST_CHECK struct error *ids_read_page(enum id_kind kind, const char *token, int32_t max_entries,
                                       const char **after);

#endif
