/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in the registry: see path.h. */
#include "registry/client/path.h"

#include <string.h>

#include "base/utf8.h"

#define NODES_PREFIX PATH_NODES "/"

static const char address_suffix[] = "/address";

static bool
is_dots(const char *element, size_t size)
{
    return (size == 1 && element[0] == '.') || (size == 2 && !memcmp(element, "..", 2));
}

static struct error *
append_elements(const char *text, char *out)
{
    char *end = out;
    while (*text) {
        size_t size = strcspn(text, "/");
        if (is_dots(text, size))
            return error_new(CODE_INVALID_ARGUMENT, "a path may not have the element \"%.*s\"",
                             (int)size, text);
        if (size && end != out)
            *end++ = '/';
        memcpy(end, text, size);
        end += size;
        text += size + (text[size] == '/');
    }
    *end = '\0';
    return NULL;
}

struct error *
path_normalize(const char *text, struct arena *arena, const char **out)
{
    size_t size = strlen(text);
    if (size > 2 * PATH_MAX_BYTES)
        return error_new(CODE_INVALID_ARGUMENT, "the path has %zu bytes; the limit is %d", size,
                         PATH_MAX_BYTES);
    if (!utf8_is_valid(text, size))
        return error_new(CODE_INVALID_ARGUMENT, "the path is not valid UTF-8");
    char *path = arena_alloc(arena, size + 1);
    struct error *error = append_elements(text, path);
    if (!error && strlen(path) > PATH_MAX_BYTES)
        error = error_new(CODE_INVALID_ARGUMENT, "the path has %zu bytes; the limit is %d",
                          strlen(path), PATH_MAX_BYTES);
    *out = path;
    return error;
}

/*
 * Whether gRPC metadata can carry the text unchanged: printable ASCII without a space at either
 * end. Otherwise no call could name the controller.
 */
static bool
fits_metadata(const char *text, size_t size)
{
    if (text[0] == ' ' || text[size - 1] == ' ')
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
            return false;
    return true;
}

/* `whose`: "controller" or "node". */
static struct error *
check_id(const char *id, const char *whose, size_t max_bytes)
{
    size_t size = strlen(id);
    if (!size)
        return error_new(CODE_INVALID_ARGUMENT, "the %s's id is empty", whose);
    if (size > max_bytes)
        return error_new(CODE_INVALID_ARGUMENT, "the %s's id has %zu bytes; the limit is %zu",
                         whose, size, max_bytes);
    if (!fits_metadata(id, size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "the %s's id must be printable ASCII without a space at either end",
                         whose);
    if (strchr(id, '/') || is_dots(id, size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "the %s's id \"%s\" has a slash, or is \".\" or \"..\"", whose, id);
    return NULL;
}

struct error *
path_check_id(const char *id)
{
    return check_id(id, "controller", PATH_MAX_ID_BYTES);
}

struct error *
path_check_node_id(const char *id)
{
    return check_id(id, "node", PATH_MAX_NODE_ID_BYTES);
}

bool
path_is_address(const char *path, size_t *id_size)
{
    const char *slash = strchr(path, '/');
    if (!slash || strcmp(slash, address_suffix) != 0)
        return false;
    *id_size = (size_t)(slash - path);
    return true;
}

const char *
path_find_node(const char *path, size_t *id_size)
{
    if (strncmp(path, NODES_PREFIX, strlen(NODES_PREFIX)) != 0)
        return NULL;
    const char *id = path + strlen(NODES_PREFIX);
    return path_is_address(id, id_size) ? id : NULL;
}

bool
path_is_below(const char *path, const char *prefix)
{
    size_t size = strlen(prefix);
    return !size || (!strncmp(path, prefix, size) && (!path[size] || path[size] == '/'));
}

char *
path_of_address(const char *id, struct arena *arena)
{
    return arena_print(arena, "%s%s", id, address_suffix);
}

char *
path_of_node(const char *id, struct arena *arena)
{
    return arena_print(arena, NODES_PREFIX "%s%s", id, address_suffix);
}
