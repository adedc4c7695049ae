/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of drivers: see driver_list.h. */
#include "connections/forward/driver_list.h"

#include <stdlib.h>

#include "base/memory.h"
#include "connections/forward/list_end.h"

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
driver_list_read(struct call *call, const struct connection *connection, enum id_kind kind,
                 driver_list_visit *visit, void *context)
{
    char *token AUTO(memory_cleanup) = memory_string("");
    struct list_end end;
    list_end_init(&end, connection->spec->name, token);
    for (;;) {
        struct call *part = call_new_part(call, 0); /* its arena holds the page */
        const char *next = token;
        struct error *error = read_page(part, connection, kind, visit, context, &next);
        if (!error && next)
            error = list_end_check(&end, next);
        free(token);
        token = !error && next ? memory_string(next) : NULL;
        call_free_detached(part);
        if (error || !token)
            return error;
        if (call_is_cancelled(call))
            return error_new(CODE_CANCELLED, "the caller has gone");
    }
}
