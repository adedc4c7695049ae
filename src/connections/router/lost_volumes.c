/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of nodes that do not answer: see lost_volumes.h. */
#include "connections/router/lost_volumes.h"

#include "connections/forward/router_state.h"
#include "connections/request/global_id.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "message/message_map.h"
#include "proto/inventory.rpc.h"

/* ---- remembering ---- */

static struct seen_volume
read_volume(const Csi__V1__Volume *volume, const char *name)
{
    struct global_id parts;
    if (!volume || !global_id_parse(ID_VOLUME, volume->volume_id, &parts))
        return (struct seen_volume){"", "", 0};
    return (struct seen_volume){parts.handle, name, volume->capacity_bytes};
}

struct seen_volume
lost_volumes_read_csi(const void *entry)
{
    return read_volume(((const Csi__V1__ListVolumesResponse__Entry *)entry)->volume, "");
}

struct seen_volume
lost_volumes_read_info(const void *entry)
{
    const Skycap__V1__VolumeInfo *info = entry;
    return read_volume(info->volume, info->name);
}

static const char *
handle_of(const char *token)
{
    const char *handle = token[0] ? ids_handle(ID_VOLUME, token) : NULL;
    return handle ? handle : "";
}

void
lost_volumes_note(const struct merged_list *list, const struct connection *connection,
                  const char *token, const struct list_page *page, lost_volumes_read *read)
{
    const struct router *router = router_of(list->call);
    struct seen_page seen = {.has_more = page->next_token[0] != '\0'};
    if (!router->seen_volumes || !connection->node_address ||
        !connection->spec->driver->speaks_our_ids)
        return;
    seen.items = arena_alloc(call_arena(list->call), page->count * sizeof *seen.items);
    for (size_t i = 0; i < page->count; i++)
        seen.items[seen.count++] = read(page->entries[i]);
    seen_volumes_set(router->seen_volumes, connection->place, handle_of(token), &seen);
}

/* ---- recalling ---- */

/* What is needed to make an entry. */
struct lost {
    const struct connection *connection;
    const struct driver_facts *facts; /* of its node */
    const struct seen_volume *volume;
    struct arena *arena;
};

static struct health_report
health_of(const struct lost *lost)
{
    const char *node_id = lost->facts->node_id, *trouble = lost->facts->trouble;
    bool is_lost = lost->connection->is_lost;
    const char *message = trouble
                              ? arena_print(lost->arena, "node \"%s\" %s: it %s", node_id,
                                            is_lost ? "is lost" : "cannot be called", trouble)
                              : arena_print(lost->arena, "node \"%s\" does not answer", node_id);
    return (struct health_report){
        {{PROBLEM_INACCESSIBLE, is_lost ? "NodeLost" : "NodeUnreachable", message}}, 1};
}

static char *
id_of(const struct lost *lost)
{
    return global_id_print(ID_VOLUME, lost->connection->spec->name, lost->volume->handle,
                           lost->arena);
}

static Csi__V1__Volume *
make_volume(const struct lost *lost)
{
    Csi__V1__Volume *volume = arena_alloc(lost->arena, sizeof *volume);
    csi__v1__volume__init(volume);
    volume->volume_id = id_of(lost);
    volume->capacity_bytes = lost->volume->size_bytes;
    return volume;
}

static void *
make_csi(const struct lost *lost)
{
    struct health_report report = health_of(lost);
    Csi__V1__ListVolumesResponse__Entry *entry = arena_alloc(lost->arena, sizeof *entry);
    csi__v1__list_volumes_response__entry__init(entry);
    entry->volume = make_volume(lost);
    entry->status = arena_alloc(lost->arena, sizeof *entry->status);
    csi__v1__list_volumes_response__volume_status__init(entry->status);
    entry->status->volume_condition = messages_condition(&report, lost->arena);
    return entry;
}

static void *
make_health(const struct lost *lost)
{
    struct health_report report = health_of(lost);
    return messages_health(id_of(lost), &report, lost->arena);
}

static void *
make_info(const struct lost *lost)
{
    struct health_report report = health_of(lost);
    Skycap__V1__VolumeInfo *info = arena_alloc(lost->arena, sizeof *info);
    skycap__v1__volume_info__init(info);
    info->name = (char *)lost->volume->name;
    info->volume = make_volume(lost);
    info->ready = true; /* it is not being copied */
    info->node_id = arena_string(lost->arena, lost->facts->node_id);
    info->condition = messages_condition(&report, lost->arena);
    return info;
}

static void
recall(const struct merged_list *list, struct connection *connection, const char *token,
       size_t most, struct list_page *out, void *(*make)(const struct lost *lost))
{
    const struct router *router = router_of(list->call);
    struct arena *arena = call_arena(list->call);
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    if (!router->seen_volumes || !connection->node_address || !facts->node_id)
        return;
    struct seen_page page =
        seen_volumes_find(router->seen_volumes, connection->place, handle_of(token), most, arena);
    out->entries = arena_alloc(arena, page.count * sizeof(void *));
    for (; out->count < page.count; out->count++) {
        struct lost lost = {connection, facts, &page.items[out->count], arena};
        out->entries[out->count] = make(&lost);
    }
    if (page.has_more)
        out->next_token = ids_print(ID_VOLUME, page.items[page.count - 1].handle, arena);
}

void
lost_volumes_recall_csi(const struct merged_list *list, struct connection *connection,
                        const char *token, size_t most, struct list_page *out)
{
    recall(list, connection, token, most, out, make_csi);
}

void
lost_volumes_recall_health(const struct merged_list *list, struct connection *connection,
                           const char *token, size_t most, struct list_page *out)
{
    recall(list, connection, token, most, out, make_health);
}

void
lost_volumes_recall_info(const struct merged_list *list, struct connection *connection,
                         const char *token, size_t most, struct list_page *out)
{
    recall(list, connection, token, most, out, make_info);
}
