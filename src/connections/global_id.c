/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of all connections: see global_id.h. */
#include "connections/global_id.h"

#include <string.h>

bool
global_id_parse(enum id_kind kind, const char *id, struct global_id *out)
{
    if (id[0] != (char)kind || id[1] != ':')
        return false;
    const char *name = id + 2;
    const char *slash = strchr(name, '/');
    size_t size = slash ? (size_t)(slash - name) : 0;
    if (size == 0 || size > SPEC_MAX_NAME || slash[1] == '\0')
        return false;
    memcpy(out->connection, name, size);
    out->connection[size] = '\0';
    out->handle = slash + 1;
    struct error *error AUTO(error_cleanup) = spec_check_name(out->connection);
    return !error;
}

char *
global_id_print(enum id_kind kind, const char *connection, const char *handle, struct arena *arena)
{
    return arena_print(arena, "%c:%s/%s", (char)kind, connection, handle);
}
