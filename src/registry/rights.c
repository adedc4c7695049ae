/* SPDX-License-Identifier: Apache-2.0 */
/* Permissions by certificate names: see rights.h. */
#include "registry/rights.h"

#include <stdio.h>
#include <string.h>

#include "registry/client/path.h"

/* On a unix socket, the permissions of the socket decide. */
static bool
is_local(const struct peer *peer)
{
    return peer->has_credentials && !peer->name_count;
}

static bool
has_name(const struct peer *peer, const char *name)
{
    for (size_t i = 0; i < peer->name_count; i++)
        if (!strcmp(peer->names[i], name))
            return true;
    return false;
}

/* "PREFIX.ID" */
static bool
has_name_of(const struct peer *peer, const char *prefix, const char *id, size_t id_size)
{
    size_t prefix_size = strlen(prefix);
    for (size_t i = 0; i < peer->name_count; i++) {
        const char *name = peer->names[i];
        if (!strncmp(name, prefix, prefix_size) && strlen(name) == prefix_size + id_size &&
            !memcmp(name + prefix_size, id, id_size))
            return true;
    }
    return false;
}

/* "node.ID", of any node. */
static bool
is_node(const struct peer *peer)
{
    for (size_t i = 0; i < peer->name_count; i++)
        if (!strncmp(peer->names[i], "node.", 5) && peer->names[i][5])
            return true;
    return false;
}

static const char *
first_name(const struct peer *peer)
{
    return peer->name_count ? peer->names[0] : "";
}

/* UNAUTHENTICATED: the peer has no name. */
static struct error *
check_identity(const struct peer *peer)
{
    if (peer->name_count)
        return NULL;
    return error_new(CODE_UNAUTHENTICATED,
                     "the caller has no name: its certificate needs a common name or a subject "
                     "alternative name, see skycap pki");
}

static bool
matches(const char *pattern, const char *name)
{
    size_t size = strlen(pattern);
    if (size && pattern[size - 1] == '*')
        return !strncmp(pattern, name, size - 1);
    return !strcmp(pattern, name);
}

struct error *
rights_check_set(const struct peer *peer, const char *path)
{
    size_t id_size;
    if (is_local(peer) || has_name(peer, "user.admin"))
        return NULL;
    struct error *error = check_identity(peer);
    if (error)
        return error;
    if (path_is_address(path, &id_size) && has_name_of(peer, "controller.", path, id_size))
        return NULL;
    const char *node = path_find_node(path, &id_size);
    if (node && id_size && has_name_of(peer, "node.", node, id_size))
        return NULL;
    return error_new(CODE_PERMISSION_DENIED,
                     "caller \"%s\" is not allowed to set \"%s\": user.admin is, controller.ID for "
                     "ID/address, and node.ID for " PATH_NODES "/ID/address",
                     first_name(peer), path);
}

struct error *
rights_check_read(const struct peer *peer, const char *const *readers, const char *path)
{
    if (is_local(peer) || has_name(peer, "user.admin") || has_name(peer, REGISTRY_NAME))
        return NULL;
    struct error *error = check_identity(peer);
    if (error)
        return error;
    if (is_node(peer) && path_is_below(path, PATH_NODES))
        return NULL;
    for (size_t i = 0; readers && readers[i]; i++)
        for (size_t j = 0; j < peer->name_count; j++)
            if (matches(readers[i], peer->names[j]))
                return NULL;
    return error_new(CODE_PERMISSION_DENIED,
                     "caller \"%s\" is not allowed to read: user.admin is, and whom "
                     "--registry-readers names",
                     first_name(peer));
}

struct error *
rights_check_rows(const struct peer *peer)
{
    if (is_local(peer) || has_name(peer, "user.admin") || is_node(peer))
        return NULL;
    struct error *error = check_identity(peer);
    if (error)
        return error;
    return error_new(CODE_PERMISSION_DENIED,
                     "caller \"%s\" is not allowed to use the cluster's rows: user.admin and "
                     "node.ID are",
                     first_name(peer));
}

struct error *
rights_check_forward(const struct peer *peer, const char *controller_id)
{
    if (is_local(peer) || has_name_of(peer, "host.", controller_id, strlen(controller_id)))
        return NULL;
    struct error *error = check_identity(peer);
    if (error)
        return error;
    return error_new(CODE_PERMISSION_DENIED,
                     "caller \"%s\" is not allowed to contact controller \"%s\": host.%s is",
                     first_name(peer), controller_id, controller_id);
}

struct error *
rights_check_node(const struct peer *peer)
{
    if (is_local(peer) || is_node(peer))
        return NULL;
    struct error *error = check_identity(peer);
    if (error)
        return error;
    return error_new(CODE_PERMISSION_DENIED, "caller \"%s\" is not allowed here: node.ID is",
                     first_name(peer));
}

struct error *
rights_check_is(const struct peer *peer, const char *name)
{
    if (is_local(peer) || has_name(peer, name))
        return NULL;
    struct error *error = check_identity(peer);
    if (error)
        return error;
    return error_new(CODE_PERMISSION_DENIED, "caller \"%s\" is not allowed here: %s is",
                     first_name(peer), name);
}
