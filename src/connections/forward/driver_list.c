/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of drivers: see driver_list.h. */
#include "connections/forward/driver_list.h"

#define MAX_PAGES 100000 /* the limit of a list that never ends */

/* Visits the page of this token; `*token` becomes that of the next page, or NULL. */
static struct error *
read_page(struct call *call, const struct connection *connection, enum id_kind kind,
          driver_list_visit *visit, void *context, const char **token)
{
    Csi__V1__ListVolumesRequest volumes = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
    Csi__V1__ListVolumesResponse volume_page = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
    Csi__V1__ListSnapshotsRequest snapshots = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Csi__V1__ListSnapshotsResponse snapshot_page = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    bool is_volume = kind == ID_VOLUME;
    volumes.starting_token = snapshots.starting_token = (char *)*token;
    const char *path =
        is_volume ? "csi.v1.Controller/ListVolumes" : "csi.v1.Controller/ListSnapshots";
    ProtobufCMessage *page = is_volume ? &volume_page.base : &snapshot_page.base;
    struct error *error =
        connection->spec->driver->call(connection->driver, call, service_find_method(path),
                                       is_volume ? &volumes.base : &snapshots.base, page);
    if (!error)
        error = visit(context, page);
    const char *next = is_volume ? volume_page.next_token : snapshot_page.next_token;
    *token = !error && next[0] ? next : NULL;
    return error;
}

struct error *
driver_list_read(const struct router *router, struct call *call,
                 const struct connection *connection, enum id_kind kind, driver_list_visit *visit,
                 void *context)
{
    const char *token = "";
    for (size_t pages = 0; pages < MAX_PAGES; pages++) {
        uint64_t left = call_time_left(call);
        struct call *own = /* its arena holds the page */
            call_new_detached(router->runtime, left == UINT64_MAX ? 0 : left + 1);
        struct error *error = read_page(own, connection, kind, visit, context, &token);
        if (token)
            token = arena_string(call_arena(call), token);
        call_free_detached(own);
        if (error || !token)
            return error;
        if (call_is_cancelled(call))
            return error_new(CODE_CANCELLED, "the caller has gone");
    }
    return error_new(CODE_OUT_OF_RANGE, "its list has more than %d pages", MAX_PAGES);
}
