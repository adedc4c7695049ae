/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of a driver: see listed_ids.h. */
#include "connections/copy/listed_ids.h"

#include <string.h>

#include "base/hash.h"
#include "connections/forward/driver_list.h"
#include "connections/request/global_id.h"
#include "connections/request/handles.h"

#define FIRST_ROOM 256

struct reading {
    struct call *call;
    const struct connection *connection;
    struct listed_ids *ids;
    size_t room;
};

static void
add(struct reading *reading, const char *handle)
{
    struct listed_ids *ids = reading->ids;
    if (ids->count == reading->room) {
        reading->room = reading->room ? 2 * reading->room : FIRST_ROOM;
        uint64_t *hashes =
            arena_alloc(call_arena(reading->call), reading->room * sizeof *ids->hashes);
        if (ids->count)
            memcpy(hashes, ids->hashes, ids->count * sizeof *hashes);
        ids->hashes = hashes;
    }
    ids->hashes[ids->count++] = hash_text(handle);
}

static struct error *
add_page(void *context, ProtobufCMessage *message)
{
    struct reading *reading = context;
    const Csi__V1__ListVolumesResponse *page = (const Csi__V1__ListVolumesResponse *)message;
    bool is_ours = reading->connection->spec->driver->speaks_our_ids;
    for (size_t i = 0; i < page->n_entries; i++) {
        const Csi__V1__Volume *volume = page->entries[i]->volume;
        const char *handle = volume && is_ours ? ids_handle(ID_VOLUME, volume->volume_id)
                             : volume          ? volume->volume_id
                                               : NULL;
        if (!handle)
            return error_new(CODE_INTERNAL, "an entry of the list has no id");
        if (reading->ids->count == LISTED_IDS_MAX)
            return error_new(CODE_OUT_OF_RANGE, "the list has more than %d volumes",
                             LISTED_IDS_MAX);
        add(reading, handle);
    }
    return NULL;
}

static bool
may_pass(const struct error *error)
{
    return error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED ||
           error->code == CODE_CANCELLED || error->code == CODE_ABORTED;
}

struct error *
listed_ids_read(struct router *router, struct call *call, const struct connection *connection,
                struct listed_ids *out)
{
    *out = (struct listed_ids){0};
    struct reading reading = {call, connection, out, 0};
    if (!CONNECTION_CAN(connection, LIST_VOLUMES))
        return NULL;
    struct error *error = driver_list_read(call, connection, ID_VOLUME, add_page, &reading);
    out->is_known = !error;
    if (!error)
        return NULL;
    if (may_pass(error))
        return error_wrap(error, "list the volumes of connection \"%s\"", connection->spec->name);
    log_warn(router->log, "cannot list the volumes of a driver",
             LOG_TEXT("connection", connection->spec->name), LOG_TEXT("error", error->message));
    error_free(error);
    return NULL;
}

struct error *
listed_ids_find(struct router *router, struct call *call, const struct listed_ids *ids,
                const char *id, bool *found)
{
    struct global_id parts;
    const char *handle;
    *found = false;
    if (!global_id_parse(ID_VOLUME, id, &parts))
        return error_new(CODE_INTERNAL, "\"%s\" is no id", id);
    struct error *error = handles_read(router->shared, id, &parts, call_arena(call), &handle);
    if (error)
        return error;
    uint64_t wanted = hash_text(handle);
    for (size_t i = 0; i < ids->count && !*found; i++)
        *found = ids->hashes[i] == wanted;
    return NULL;
}
