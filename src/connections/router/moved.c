/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that have moved: see moved.h. */
#include "connections/router/moved.h"

#include <stdio.h>
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "connections/forward/forward.h"
#include "connections/forward/router_state.h"
#include "connections/router/homeless.h"
#include "connections/router/places.h"
#include "volumes/handle.h"

struct connection *
moved_guess(const struct router *router, const struct connection_set *set, const char *handle,
            struct connection *home)
{
    struct connection *known = router->cluster ? places_find(router->places, set, handle) : NULL;
    return known ? known : home;
}

bool
moved_is_likely(const struct connection *connection, const struct connection *home,
                const struct error *error)
{
    if (!connection->spec->driver->speaks_our_ids)
        return false;
    return (error->code == CODE_UNAVAILABLE && !error->in_doubt) ||
           (error->code == CODE_NOT_FOUND && connection != home);
}

struct connection *
moved_find_node(const struct connection_set *set, const char *name, const char *node_id)
{
    char home[HANDLE_HOME_SIZE], place[SPEC_MAX_ALIAS + 1 + sizeof home];
    handle_print_home(node_id, home);
    snprintf(place, sizeof place, "%s@%s", name, home);
    struct connection *found = connection_set_find_place(set, place);
    return found && found->spec->driver->speaks_our_ids ? found : NULL;
}

bool
moved_ask_nodes(struct call *call, const struct connection_set *set, const char *name,
                const char *handle, struct moved *out)
{
    struct connection *own = connection_set_find(set, name);
    struct connection *found = own ? homeless_ask_all(call, set, own, ID_VOLUME, handle) : NULL;
    if (!found)
        return false;
    *out = (struct moved){found, false};
    places_set(router_of(call)->places, handle, found->place);
    return true;
}

struct error *
moved_find(struct call *call, const struct connection_set *set, const char *name,
           const char *handle, struct moved *out)
{
    struct router *router = router_of(call);
    struct owner owner;
    *out = (struct moved){0};
    places_forget(router->places, handle);
    struct error *error = owners_peek(cluster_rows(router->cluster), name, handle, &owner);
    if (error && moved_ask_nodes(call, set, name, handle, out)) {
        error_free(error);
        return NULL;
    }
    if (error || !owner.epoch)
        return error;
    out->is_deleted = !owner.node_id[0];
    if (out->is_deleted)
        return NULL;
    out->connection = moved_find_node(set, name, owner.node_id);
    if (!out->connection)
        return error_new(CODE_UNAVAILABLE, "\"%s\" is on node \"%s\", which is not registered",
                         handle, owner.node_id);
    places_set(router->places, handle, out->connection->place);
    return NULL;
}

struct error *
moved_find_taken(struct forward *f, struct error *error)
{
    struct connection *own = connection_set_find(f->set, f->connection->spec->name);
    struct connection *first = f->connection;
    for (size_t i = 0; own && i <= f->set->elsewhere_count; i++) {
        f->connection = i ? f->set->elsewhere[i - 1] : own;
        if (f->connection == first || strcmp(f->connection->spec->name, own->spec->name) != 0)
            continue;
        struct error *other = forward_run(f);
        if (!other) {
            error_free(error);
            return NULL;
        }
        error_free(other);
    }
    return error;
}
