/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids as the outside sees them: v:CONNECTION/HANDLE for volumes, s: for snapshots, g: for groups.
 * At most 128 bytes.
 */
#ifndef CSI_IDS_H
#define CSI_IDS_H

#include "base/arena.h"
#include "base/error.h"

/* The connection of what this node keeps itself. */
#define IDS_LOCAL "local"

enum id_kind { ID_VOLUME = 'v', ID_SNAPSHOT = 's', ID_GROUP = 'g' };

char *ids_print(enum id_kind kind, const char *handle, struct arena *arena);

/* The handle in an id of ours; NULL for any other text, which is an id that does not exist. */
const char *ids_handle(enum id_kind kind, const char *id);

/* The same, for who needs it: NOT_FOUND names the id. */
MUST_CHECK struct error *ids_find_handle(enum id_kind kind, const char *id, const char **handle);

#endif
