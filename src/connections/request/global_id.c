/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of all connections: see global_id.h. */
#include "connections/request/global_id.h"

#include <string.h>

bool
global_id_parse(enum id_kind kind, const char *id, struct global_id *out)
{
    if (id[0] != (char)kind || id[1] != ':')
        return false;
    const char *name = id + 2;
    const char *slash = strchr(name, '/');
    size_t size = slash ? (size_t)(slash - name) : 0;
    if (size == 0 || size > SPEC_MAX_ALIAS || slash[1] == '\0')
        return false;
    memcpy(out->connection, name, size);
    out->connection[size] = '\0';
    out->handle = slash + 1;
    return spec_is_alias(out->connection);
}

char *
global_id_print(enum id_kind kind, const char *connection, const char *handle, struct arena *arena)
{
    size_t name_size = strlen(connection), handle_size = strlen(handle) + 1;
    char *id = arena_alloc(arena, name_size + handle_size + 3);
    id[0] = (char)kind;
    id[1] = ':';
    memcpy(id + 2, connection, name_size);
    id[2 + name_size] = '/';
    memcpy(id + 3 + name_size, handle, handle_size);
    return id;
}
