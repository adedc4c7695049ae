/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from another connection, in a cluster: see across.h. */
#include "connections/router/across.h"

#include "connections/copy/cross_copy.h"
#include "connections/forward/route.h"
#include "connections/router/moved.h"

static struct error *
find_target(const struct choice *choice, struct connection **out)
{
    for (size_t i = 0; i < choice->count; i++) {
        *out = choice->items[i];
        if (!(*out)->node_address)
            return NULL;
    }
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(choice->items[0]->driver);
    return error_new(CODE_FAILED_PRECONDITION,
                     "a node copies from another connection only to itself: send this request to "
                     "node \"%s\", or copy within the connection first",
                     facts->node_id);
}

/* The error is that of a source which is not where it was looked for. NULL: there is no other. */
static struct connection *
find_moved(struct call *call, const struct connection_set *set,
           const Csi__V1__CreateVolumeRequest *request, const struct connection *source,
           const struct error *error)
{
    struct route route;
    struct moved moved;
    struct error *failure AUTO(error_cleanup) =
        route_find(router_of(call), set, &request->volume_content_source->base, &route);
    if (failure || !router_of(call)->cluster || route.kind != ID_VOLUME || !route.handle ||
        !moved_is_likely(source, route.connection, error))
        return NULL;
    failure = moved_find(call, set, source->spec->name, route.handle, &moved);
    return failure || moved.connection == source ? NULL : moved.connection;
}

struct error *
across_create(struct call *call, const struct connection_set *set, struct connection *source,
              const struct choice *choice, const Csi__V1__CreateVolumeRequest *request,
              Csi__V1__CreateVolumeResponse *reply)
{
    struct connection *target = NULL;
    struct error *error = find_target(choice, &target);
    if (error)
        return error;
    error = cross_copy_volume(call, set, source, target, request, reply);
    struct connection *moved = error ? find_moved(call, set, request, source, error) : NULL;
    if (!moved)
        return error;
    error_free(error);
    return cross_copy_volume(call, set, moved, target, request, reply);
}
