/* SPDX-License-Identifier: Apache-2.0 */
/* Conflicts between connection files: see spec_set.h. */
#include "connections/config/spec_set.h"

#include <string.h>

/* An id with the alias could belong to either: a delete could reach the wrong one. */
static struct error *
check_names(const struct spec_set_file *file, const struct spec_set_file *other)
{
    if (other->spec && spec_has_alias(other->spec, file->name))
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" is an alias of connection \"%s\", and ids with it belong to that "
                         "connection; choose another name, or remove the alias",
                         file->name, other->name);
    for (size_t i = 0; i < file->spec->aliases.count; i++) {
        const char *alias = file->spec->aliases.items[i];
        if (strcmp(alias, other->name) == 0)
            return error_new(CODE_INVALID_ARGUMENT,
                             "aliases: connection \"%s\" has a file of its own, and ids with that "
                             "name can belong to only one; remove the file or the alias",
                             alias);
        if (other->spec && spec_has_alias(other->spec, alias))
            return error_new(CODE_INVALID_ARGUMENT,
                             "aliases: \"%s\" is an alias of connection \"%s\" as well, and ids "
                             "with it can belong to only one",
                             alias, other->name);
    }
    return NULL;
}

static const char *
server_of(const struct connection_spec *spec, const char *node_id, struct arena *arena)
{
    return spec && spec->driver->server ? spec->driver->server(spec->options, node_id, arena)
                                        : NULL;
}

static bool
goes_before(const struct spec_set_file *a, const struct spec_set_file *b)
{
    return a->is_in_force != b->is_in_force ? a->is_in_force : strcmp(a->name, b->name) < 0;
}

/*
 * Each volume would have two ids, and would be listed and counted twice. Where names make ids, two
 * connections would give one volume to two users.
 */
static struct error *
check_server(const struct spec_set_file *file, const struct spec_set_file *other,
             const char *node_id)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *server = server_of(file->spec, node_id, &arena);
    const char *others = server ? server_of(other->spec, node_id, &arena) : NULL;
    if (!others || strcmp(server, others) != 0 || goes_before(file, other))
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "connection \"%s\" leads to the same driver, at %s: every volume would "
                     "appear twice; add \"%s\" to the aliases of \"%s\", so that its ids stay "
                     "valid, and move its parameters to storage classes",
                     other->name, server, file->name, other->name);
}

struct error *
spec_set_check(const struct spec_set_file *files, size_t count, size_t index, const char *node_id)
{
    struct error *error = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        if (i == index || strcmp(files[i].name, files[index].name) == 0)
            continue;
        error = check_names(&files[index], &files[i]);
        if (!error)
            error = check_server(&files[index], &files[i], node_id);
    }
    return error;
}
