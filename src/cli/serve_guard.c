/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions of callers: see serve_guard.h. Runs before every call, on the loop.
 *
 * Calls with "controllerid" are forwarded to that controller. The registry's services check their
 * calls themselves, because permissions depend on the path of the entry. Everyone may use health
 * and reflection. A node's engines are for other nodes, its CSI services for user.admin. Where
 * there is a registry or an OIM controller, everything else is only for the registry. A process
 * that only serves CSI is for user.admin, and for the registry, which may forward calls to it. All
 * this includes unknown methods, which a connection may forward.
 */
#include "cli/serve_guard.h"

#include <string.h>

#include "registry/rights.h"

static bool
checks_itself(const char *path)
{
    static const char *const services[] = {"/oim.v0.Registry/", "/skycap.v1.Registry/",
                                           "/skycap.v1.ClusterStore/", "/grpc.health.v1.",
                                           "/grpc.reflection."};
    for (size_t i = 0; i < COUNT_OF(services); i++)
        if (!strncmp(path, services[i], strlen(services[i])))
            return true;
    return false;
}

/* Calls to a controller in the registry's process are not forwarded, but need the permission. */
static bool
is_for_own(const struct serve_guard *guard, const struct call *call)
{
    const char *id = metadata_find(call_metadata(call), "controllerid");
    if (!guard->registry || !guard->own_controller || !id || strcmp(id, guard->own_controller) != 0)
        return false;
    struct error *error AUTO(error_cleanup) = rights_check_forward(call_peer(call), id);
    return !error;
}

static bool
is_of(const char *path, const char *package)
{
    return !strncmp(path, package, strlen(package));
}

/* What a node serves. */
static struct error *
check_node(const struct call *call, bool *is_decided)
{
    const char *path = call_path(call);
    *is_decided = true;
    if (is_of(path, "/skycap.v1.Peer/") || is_of(path, "/skycap.v1.Transfer/") ||
        is_of(path, "/skycap.v1.Objects/"))
        return rights_check_node(call_peer(call));
    if (is_of(path, "/csi.v1.SnapshotMetadata/")) { /* of snapshots that other nodes can fetch */
        struct error *error AUTO(error_cleanup) = rights_check_node(call_peer(call));
        if (!error)
            return NULL;
    }
    if (is_of(path, "/csi.v1.") || is_of(path, "/skycap.v1."))
        return rights_check_is(call_peer(call), RIGHTS_ADMIN);
    *is_decided = false;
    return NULL;
}

/* What only serves CSI. */
static struct error *
check_csi(const struct peer *peer)
{
    struct error *error = rights_check_is(peer, RIGHTS_ADMIN);
    struct error *other AUTO(error_cleanup) = error ? rights_check_is(peer, REGISTRY_NAME) : NULL;
    if (!error || other)
        return error;
    error_free(error);
    return NULL;
}

static struct error *
check(struct call *call, void *context, bool *to_fallback)
{
    const struct serve_guard *guard = context;
    if (guard->registry && registry_should_forward(guard->registry, call)) {
        *to_fallback = true;
        return NULL;
    }
    bool is_checked_later =
        call_method(call) ? checks_itself(call_path(call)) : guard->registry != NULL;
    if (guard->is_open || is_checked_later || is_for_own(guard, call))
        return NULL;
    bool is_decided = false;
    struct error *error = guard->is_in_cluster ? check_node(call, &is_decided) : NULL;
    if (is_decided)
        return error;
    bool has_oim = guard->registry || guard->own_controller;
    return has_oim ? rights_check_is(call_peer(call), REGISTRY_NAME) : check_csi(call_peer(call));
}

void
serve_guard_add(struct serve_guard *guard, struct server *server)
{
    server_set_guard(server, &(struct guard){check, guard});
}
