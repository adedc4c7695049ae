/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids as the orchestrator sees them, KIND:CONNECTION/HANDLE, taken apart and put together.
 * csi/ids.h has the kinds.
 */
#ifndef CONNECTIONS_REQUEST_GLOBAL_ID_H
#define CONNECTIONS_REQUEST_GLOBAL_ID_H

#include <stdbool.h>

#include "base/arena.h"
#include "connections/config/spec.h"
#include "csi/ids.h"

#define GLOBAL_ID_MAX 128 /* bytes, as CSI has it */

struct global_id {
    char connection[SPEC_MAX_ALIAS + 1]; /* its name, or an alias */
    const char *handle; /* in the id that was taken apart; never empty, may hold slashes */
};

/* False: it is nothing that this program could have given out. */
bool global_id_parse(enum id_kind kind, const char *id, struct global_id *out);

char *global_id_print(enum id_kind kind, const char *connection, const char *handle,
                      struct arena *arena);

#endif
