/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of a driver: see listed_ids.h. */
#include "connections/listed_ids.h"

#include <string.h>

#include "connections/global_id.h"
#include "connections/handles.h"

#define MAX_PAGES 100000 /* a driver whose list never ends is not asked for ever */
#define FIRST_ROOM 256

struct reading {
    struct router *router;
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
    ids->hashes[ids->count++] = handles_hash(handle);
}

static struct error *
add_page(struct reading *reading, const Csi__V1__ListVolumesResponse *page)
{
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

/* The page with this token; `*token` becomes that of the next, NULL: there is none. In an arena of its own: a list may be long. */
static struct error *
read_page(struct reading *reading, char **token)
{
    uint64_t left = call_time_left(reading->call);
    struct call *call =
        call_new_detached(reading->router->options.runtime, left == UINT64_MAX ? 0 : left + 1);
    Csi__V1__ListVolumesRequest request = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
    Csi__V1__ListVolumesResponse page = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
    request.starting_token = *token ? *token : "";
    struct error *error = reading->connection->spec->driver->call(
        reading->connection->driver, call, service_find_method("csi.v1.Controller/ListVolumes"),
        &request.base, &page.base);
    if (!error)
        error = add_page(reading, &page);
    bool has_more = !error && page.next_token[0];
    *token = has_more ? arena_string(call_arena(reading->call), page.next_token) : NULL;
    call_free_detached(call);
    return error;
}

static struct error *
read_pages(struct reading *reading)
{
    char *token = NULL;
    for (size_t pages = 0; pages < MAX_PAGES; pages++) {
        struct error *error = read_page(reading, &token);
        if (error || !token)
            return error;
        if (call_is_cancelled(reading->call))
            return error_new(CODE_CANCELLED, "nobody waits for it any more");
    }
    return error_new(CODE_OUT_OF_RANGE, "the list has more than %d pages", MAX_PAGES);
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
    struct reading reading = {router, call, connection, out, 0};
    if (!connection_can(connection,
                        CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES))
        return NULL;
    struct error *error = read_pages(&reading);
    out->is_known = !error;
    if (!error)
        return NULL;
    if (may_pass(error))
        return error_wrap(error, "list the volumes of connection \"%s\"", connection->spec->name);
    log_warn(router->options.log, "which volumes a driver has cannot be told",
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
    struct error *error =
        handles_read(router->options.shared, id, &parts, call_arena(call), &handle);
    if (error)
        return error;
    uint64_t wanted = handles_hash(handle);
    for (size_t i = 0; i < ids->count && !*found; i++)
        *found = ids->hashes[i] == wanted;
    return NULL;
}
