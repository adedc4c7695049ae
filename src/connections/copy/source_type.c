/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a source: see source_type.h. */
#include "connections/copy/source_type.h"

#include "connections/forward/forward.h"
#include "connections/request/global_id.h"
#include "csi/ids.h"
#include "proto/inventory.pb-c.h"

static struct error *
ask_for_volume(struct call *call, const struct connection_set *set, struct connection *from,
               const char *handle, const char **out)
{
    Skycap__V1__GetVolumeRequest request = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse reply = SKYCAP__V1__GET_VOLUME_RESPONSE__INIT;
    request.volume = ids_print(ID_VOLUME, handle, call_arena(call));
    struct error *error = forward_own(router_of(call), set, from, call,
                                      "skycap.v1.Inventory/GetVolume", &request.base, &reply.base);
    if (!error && reply.volume)
        *out = reply.volume->type;
    return error;
}

static struct error *
ask_for_snapshot(struct call *call, const struct connection_set *set, struct connection *from,
                 const char *handle, const char **out)
{
    Skycap__V1__GetSnapshotRequest request = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse reply = SKYCAP__V1__GET_SNAPSHOT_RESPONSE__INIT;
    request.snapshot = ids_print(ID_SNAPSHOT, handle, call_arena(call));
    struct error *error =
        forward_own(router_of(call), set, from, call, "skycap.v1.Inventory/GetSnapshot",
                    &request.base, &reply.base);
    if (!error && reply.snapshot)
        *out = reply.snapshot->type;
    return error;
}

struct error *
source_type_find(struct call *call, const struct connection_set *set, struct connection *from,
                 const Csi__V1__VolumeContentSource *content, const char **out)
{
    bool of_snapshot = content->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
    const char *id = of_snapshot ? content->snapshot->snapshot_id : content->volume->volume_id;
    struct global_id parts;
    *out = "";
    if (!from->spec->driver->speaks_our_ids)
        return NULL;
    if (!global_id_parse(of_snapshot ? ID_SNAPSHOT : ID_VOLUME, id, &parts))
        return error_new(CODE_NOT_FOUND, "there is no \"%s\"", id);
    struct error *error = of_snapshot ? ask_for_snapshot(call, set, from, parts.handle, out)
                                      : ask_for_volume(call, set, from, parts.handle, out);
    return error_wrap(error, "find the file system of \"%s\"", id);
}
