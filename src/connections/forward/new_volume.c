/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume on one connection: see new_volume.h. */
#include "connections/forward/new_volume.h"

#include "connections/forward/forward.h"
#include "connections/request/choice.h"

#define PATH "/csi.v1.Controller/CreateVolume"

struct error *
new_volume_prepare(const struct connection *connection, Csi__V1__CreateVolumeRequest *request,
                   struct arena *arena)
{
    struct error *error;
    if (!rules_is_supported(rules_find(PATH), connection, &error))
        return error;
    choice_merge_parameters(connection, &request->base, arena);
    return NULL;
}

struct error *
new_volume_create(const struct router *router, struct call *call, const struct connection_set *set,
                  struct connection *connection, const Csi__V1__CreateVolumeRequest *asked,
                  Csi__V1__CreateVolumeResponse *reply)
{
    struct arena *arena = call_arena(call);
    Csi__V1__CreateVolumeRequest *request =
        (Csi__V1__CreateVolumeRequest *)arena_copy(arena, asked, sizeof *asked);
    struct error *error = new_volume_prepare(connection, request, arena);
    if (error)
        return error;
    return forward_call(router, set, connection, call, service_find_method(PATH), &request->base,
                        &reply->base);
}
