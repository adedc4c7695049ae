/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in CSI messages: see ids.h. */
#include "csi/ids.h"

#include <string.h>

#include "backends/backend.h"

char *
ids_print(enum id_kind kind, const char *handle, struct arena *arena)
{
    return arena_print(arena, "%c:%s/%s", (char)kind, IDS_LOCAL, handle);
}

/* A handle at the beginning of the text; 0: there is none. */
static size_t
handle_size(const char *text)
{
    size_t size = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz-");
    return size < BACKEND_HANDLE_SIZE ? size : 0;
}

/* What follows the connection in an id of this node; NULL: it is none. */
static const char *
skip_connection(enum id_kind kind, const char *id)
{
    static const char connection[] = ":" IDS_LOCAL "/";
    if (id[0] != (char)kind || strncmp(id + 1, connection, sizeof connection - 1) != 0)
        return NULL;
    return id + 1 + sizeof connection - 1;
}

const char *
ids_handle(enum id_kind kind, const char *id)
{
    const char *handle = skip_connection(kind, id);
    size_t size = handle ? handle_size(handle) : 0;
    return size && !handle[size] ? handle : NULL;
}

const char *
ids_operation(enum id_kind kind, const char *id)
{
    const char *operation = skip_connection(kind, id);
    size_t size = operation ? handle_size(operation) : 0;
    if (!size || (operation[size] && operation[size] != '.'))
        return NULL;
    return operation;
}

static const char *
kind_name(enum id_kind kind)
{
    return kind == ID_VOLUME ? "volume" : kind == ID_SNAPSHOT ? "snapshot" : "group";
}

struct error *
ids_find_handle(enum id_kind kind, const char *id, const char **handle)
{
    *handle = ids_handle(kind, id);
    if (*handle)
        return NULL;
    return error_new(CODE_NOT_FOUND, "there is no %s \"%s\"", kind_name(kind), id);
}

struct error *
ids_read_page(enum id_kind kind, const char *token, int32_t max_entries, const char **after)
{
    *after = token[0] ? ids_handle(kind, token) : NULL;
    if (max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    if (token[0] && !*after)
        return error_new(CODE_ABORTED,
                         "starting_token is not from this list: start again without it");
    return NULL;
}
