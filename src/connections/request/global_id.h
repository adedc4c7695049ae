/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints ids as the orchestrator sees them: KIND:CONNECTION/HANDLE (csi/ids.h). */
#ifndef CONNECTIONS_REQUEST_GLOBAL_ID_H
#define CONNECTIONS_REQUEST_GLOBAL_ID_H

#include <stdbool.h>

#include "base/arena.h"
#include "connections/config/spec.h"
#include "csi/ids.h"

#define GLOBAL_ID_MAX 128 /* bytes; CSI's limit */

struct global_id {
    char connection[SPEC_MAX_ALIAS + 1]; /* its name, or an alias */
    const char *handle; /* points into the parsed id; never empty, may contain slashes */
};

/* False: this program cannot have issued the id. */
bool global_id_parse(enum id_kind kind, const char *id, struct global_id *out);

char *global_id_print(enum id_kind kind, const char *connection, const char *handle,
                      struct arena *arena);

#endif
