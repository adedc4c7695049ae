/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.Inventory: see proto/inventory.proto. CSI knows volumes by id alone and snapshots
 * without a name; a service of our own tells the rest and leaves CSI's messages as small as
 * orchestrators need them.
 */
#include "csi/inventory.h"

#include <string.h>

#include "csi/ids.h"
#include "csi/inventory_exports.h"
#include "csi/messages.h"
#include "message/message_map.h"
#include "message/message_time.h"
#include "node/drill.h"
#include "node/ephemeral.h"
#include "node/use.h"
#include "rpc/server/call.h"
#include "volumes/move.h"
#include "volumes/move_rows.h"
#include "volumes/replica.h"
#include "volumes/replica_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define MAX_ENTRIES 1000

#define STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name

/* ---- finding ---- */

/* The handle of an id, which may not exist, or of a name; NULL if there is no such name. */
static struct error *
find_handle(struct engine *engine, const struct row_kind *kind, enum id_kind id_kind,
            const char *text, struct arena *arena, const char **handle)
{
    struct row row;
    *handle = ids_handle(id_kind, text);
    if (*handle)
        return NULL;
    struct error *error = rows_find(engine, kind, text, arena, &row);
    if (!error && row.record)
        memcpy(handle, (char *)row.record + kind->handle_offset, sizeof *handle);
    return error;
}

/* The name of a volume or snapshot; empty if users see none (any more). */
static struct error *
find_name(struct engine *engine, const struct row_kind *kind, const char *handle,
          struct arena *arena, char **name)
{
    struct row row;
    *name = "";
    struct error *error = rows_get(engine, kind, handle, arena, &row);
    if (!error && (kind != &snapshot_rows || !snapshot_is_hidden((snapshot_record *)row.record)))
        memcpy(name, (char *)row.record + kind->name_offset, sizeof *name);
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
not_found(const char *kind, const char *text)
{
    return error_new(CODE_NOT_FOUND, "there is no %s \"%s\"", kind, text);
}

/* NOT_FOUND with the id or name of the request instead of the handle. */
static struct error *
not_found_as_asked(struct error *error, const char *kind, const char *text)
{
    if (error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    return not_found(kind, text);
}

static const char *
type_of(Skycap__Records__VolumeRecord__Kind kind, const char *fs_type)
{
    if (kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE)
        return "directory";
    return fs_type[0] ? fs_type : "block";
}

/* ---- the fields of a volume ---- */

static struct error *
fill_source(struct engine *engine, const volume_record *record, struct arena *arena,
            Skycap__V1__VolumeInfo *info)
{
    const Csi__V1__VolumeContentSource *source = record->source;
    if (!source)
        return NULL;
    if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
        return find_name(engine, &volume_rows, source->volume->volume_id, arena,
                         &info->source_name);
    return find_name(engine, &snapshot_rows, source->snapshot->snapshot_id, arena,
                     &info->source_name);
}

static void
fill_parameters(const volume_record *record, struct arena *arena, Skycap__V1__VolumeInfo *info)
{
    struct text_map all = message_map_read(record->parameters, record->n_parameters, arena);
    struct text_map changed =
        message_map_read(record->mutable_parameters, record->n_mutable_parameters, arena);
    for (size_t i = 0; i < changed.count; i++)
        text_map_set(&all, arena, changed.pairs[i].key, changed.pairs[i].value);
    message_map_write(&all, arena, &skycap__v1__volume_info__parameters_entry__descriptor,
                      &info->parameters, &info->n_parameters);
}

static void
fill_capabilities(const volume_record *record, struct arena *arena, Skycap__V1__VolumeInfo *info)
{
    info->capabilities = arena_alloc(arena, record->n_capabilities * sizeof(void *));
    info->n_capabilities = record->n_capabilities;
    for (size_t i = 0; i < record->n_capabilities; i++) {
        volume_capability *copy = arena_alloc(arena, sizeof *copy);
        *copy = *record->capabilities[i];
        if (!capability_is_block(copy)) {
            copy->mount = arena_alloc(arena, sizeof *copy->mount);
            *copy->mount = *record->capabilities[i]->mount;
            copy->mount->n_mount_flags = 0;
        }
        info->capabilities[i] = copy;
    }
}

static Skycap__V1__VolumeUse *
use_message(const volume_record *volume, const mount_record *record, struct arena *arena)
{
    Skycap__V1__VolumeUse *use = arena_alloc(arena, sizeof *use);
    skycap__v1__volume_use__init(use);
    use->path = record->path;
    use->staging_path = record->staging_path;
    use->staging = !mount_rows_is_publication(record) && !volume->ephemeral;
    use->read_only = record->read_only;
    return use;
}

/* Ignores rows whose mounts are gone, as after a reboot. */
static struct error *
fill_uses(struct engine *engine, const volume_record *volume, struct arena *arena,
          Skycap__V1__VolumeInfo *info)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    if (!error && rows.count)
        error = backing_find(engine, volume, &backing);
    if (error)
        return error;
    info->uses = arena_alloc(arena, rows.count * sizeof(void *));
    for (size_t i = 0; i < rows.count && !error; i++) {
        struct use use = use_of_row(rows.records[i]);
        bool is_used = false;
        error = use_is_mounted(&backing, &use, &is_used);
        if (!error && is_used)
            info->uses[info->n_uses++] = use_message(volume, rows.records[i], arena);
    }
    return error;
}

static struct error *
fill_condition(struct engine *engine, const volume_record *record, struct arena *arena,
               Skycap__V1__VolumeInfo *info)
{
    struct health_report health = {0};
    struct error *error = controller_check_health(engine, record, arena, &health);
    info->condition = messages_condition(&health, arena);
    return error;
}

static struct error *
make_volume(struct engine *engine, const volume_record *record, bool is_brief, struct arena *arena,
            Skycap__V1__VolumeInfo **out)
{
    Skycap__V1__VolumeInfo *info = arena_alloc(arena, sizeof *info);
    skycap__v1__volume_info__init(info);
    info->name = record->ephemeral ? ephemeral_id(record) : (char *)drill_shown_name(record->name);
    info->ephemeral = record->ephemeral;
    info->volume = messages_volume(engine, record, arena);
    info->type = (char *)type_of(record->kind, record->fs_type);
    info->ready = record->state == STATE(READY) || record->state == STATE(LOST);
    if (engine->home[0]) /* a node that is alone needs no name */
        info->node_id = arena_string(arena, engine->node_id);
    if (record->state == STATE(MOVING))
        info->moving_to = record->move->node_id;
    info->created = message_time_new(record->created_ns, arena);
    info->node_ids = messages_node_ids(record, arena, &info->n_node_ids);
    info->unavailable_ms = record->unavailable_ms;
    *out = info;
    struct error *error = fill_source(engine, record, arena, info);
    if (error || is_brief)
        return error;
    fill_parameters(record, arena, info);
    fill_capabilities(record, arena, info);
    if (!info->ready)
        return NULL;
    error = fill_condition(engine, record, arena, info);
    return error ? error : fill_uses(engine, record, arena, info);
}

/* ---- volumes ---- */

/* Volumes that are, or become, this node's, unlike rows of moves. */
static bool
is_here(const volume_record *volume)
{
    return move_rows_is_listed(volume) || volume->state == STATE(COPYING);
}

/* Unlike CSI, shows a volume that is still being copied. */
static struct error *
read_volume(struct engine *engine, const char *handle, struct arena *arena, volume_record **out)
{
    struct row row;
    struct error *error = rows_get(engine, &volume_rows, handle, arena, &row);
    if (error)
        return move_explain_absence(engine, error);
    *out = (volume_record *)row.record;
    return is_here(*out) ? NULL : volume_check_ready(*out);
}

static struct error *
get_volume(struct call *call, const Skycap__V1__GetVolumeRequest *request,
           Skycap__V1__GetVolumeResponse *reply)
{
    struct engine *engine = call_context(call);
    struct arena *arena = call_arena(call);
    const char *handle;
    volume_record *record = NULL;
    struct error *error =
        find_handle(engine, &volume_rows, ID_VOLUME, request->volume, arena, &handle);
    if (!error && !handle)
        error = ephemeral_find(engine, request->volume, arena, &handle);
    if (!error && !handle)
        error = not_found("volume", request->volume);
    if (!error)
        error = read_volume(engine, handle, arena, &record);
    /* A name that leads to another node: that will be asked, too. */
    if (error && error->code == CODE_UNAVAILABLE && !ids_handle(ID_VOLUME, request->volume))
        error->code = CODE_NOT_FOUND;
    if (error)
        return not_found_as_asked(error, "volume", request->volume);
    return make_volume(engine, record, false, arena, &reply->volume);
}

static size_t
limit_of(int32_t max_entries)
{
    return max_entries > 0 && max_entries < MAX_ENTRIES ? (size_t)max_entries : MAX_ENTRIES;
}

static struct error *
list_volumes(struct call *call, const Skycap__V1__ListVolumesRequest *request,
             Skycap__V1__ListVolumesResponse *reply)
{
    struct engine *engine = call_context(call);
    struct arena *arena = call_arena(call);
    const char *after;
    struct row_page page;
    struct error *error =
        ids_read_page(ID_VOLUME, request->starting_token, request->max_entries, &after);
    if (!error)
        error =
            rows_list(engine, &volume_rows, after, limit_of(request->max_entries), arena, &page);
    if (error)
        return error;
    reply->volumes = arena_alloc(arena, page.count * sizeof(void *));
    for (size_t i = 0; i < page.count && !error; i++) {
        const volume_record *record = (volume_record *)page.rows[i].record;
        if (is_here(record))
            error = make_volume(engine, record, request->brief, arena,
                                &reply->volumes[reply->n_volumes++]);
        if (page.has_more && i + 1 == page.count)
            reply->next_token = ids_print(ID_VOLUME, record->handle, arena);
    }
    return error;
}

/* ---- snapshots ---- */

/* Other nodes that have a copy of a snapshot of this node. */
static struct error *
fill_holders(struct engine *engine, const char *handle, struct arena *arena,
             Skycap__V1__SnapshotInfo *info)
{
    struct replica_row_list rows;
    struct error *error = replica_rows_list(engine, handle, arena, &rows);
    if (error)
        return error;
    info->holders = arena_alloc(arena, rows.count * sizeof *info->holders);
    for (size_t i = 0; i < rows.count; i++) {
        Skycap__V1__SnapshotHolder *holder = arena_alloc(arena, sizeof *holder);
        skycap__v1__snapshot_holder__init(holder);
        holder->node_id = (char *)rows.items[i].node_id;
        holder->state = rows.items[i].is_held ? "held" : "copying";
        info->holders[info->n_holders++] = holder;
    }
    return NULL;
}

struct error *
inventory_make_snapshot(struct engine *engine, const snapshot_record *record, struct arena *arena,
                        Skycap__V1__SnapshotInfo **out)
{
    Skycap__V1__SnapshotInfo *info = arena_alloc(arena, sizeof *info);
    skycap__v1__snapshot_info__init(info);
    info->is_replica = snapshot_is_replica(record);
    info->is_orphan = record->is_orphan;
    info->name = info->is_replica ? record->origin_name : record->name;
    if (engine->home[0])
        info->node_id = info->is_replica ? record->peer_node : arena_string(arena, engine->node_id);
    info->snapshot = messages_snapshot(record, arena);
    info->type = (char *)type_of(record->kind, record->fs_type);
    info->consistency = (char *)snapshot_consistency(engine, record, arena);
    struct text_map parameters = message_map_read(record->parameters, record->n_parameters, arena);
    message_map_write(&parameters, arena, &skycap__v1__snapshot_info__parameters_entry__descriptor,
                      &info->parameters, &info->n_parameters);
    inventory_fill_exports(record, arena, info);
    *out = info;
    if (info->is_replica && record->volume)
        info->source_name = record->volume->name;
    if (info->is_replica)
        return NULL;
    struct error *error =
        find_name(engine, &volume_rows, record->source_handle, arena, &info->source_name);
    return error || !engine->home[0] ? error : fill_holders(engine, record->handle, arena, info);
}

/* By its id, or the name that it has here or, for a copy of another node's, there. */
static struct error *
find_snapshot(struct engine *engine, const char *text, struct arena *arena, snapshot_record **out)
{
    const char *handle;
    *out = NULL;
    struct error *error = find_handle(engine, &snapshot_rows, ID_SNAPSHOT, text, arena, &handle);
    if (!error && handle)
        return snapshot_get_shown(engine, handle, arena, out);
    if (!error && engine->home[0])
        error = replica_find_named(engine, text, arena, out);
    return error || *out ? error : not_found("snapshot", text);
}

static struct error *
get_snapshot(struct call *call, const Skycap__V1__GetSnapshotRequest *request,
             Skycap__V1__GetSnapshotResponse *reply)
{
    struct engine *engine = call_context(call);
    struct arena *arena = call_arena(call);
    snapshot_record *record;
    struct error *error = find_snapshot(engine, request->snapshot, arena, &record);
    if (error)
        return not_found_as_asked(error, "snapshot", request->snapshot);
    inventory_drop_removed(engine, record, arena);
    error = inventory_make_snapshot(engine, record, arena, &reply->snapshot);
    return error ? error : inventory_add_running(engine, record, arena, reply->snapshot);
}

static struct error *
list_snapshots(struct call *call, const Skycap__V1__ListSnapshotsRequest *request,
               Skycap__V1__ListSnapshotsResponse *reply)
{
    struct engine *engine = call_context(call);
    struct arena *arena = call_arena(call);
    const char *after, *source = NULL;
    struct snapshot_page page;
    struct error *error =
        ids_read_page(ID_SNAPSHOT, request->starting_token, request->max_entries, &after);
    if (!error && request->of_volume[0]) {
        error = find_handle(engine, &volume_rows, ID_VOLUME, request->of_volume, arena, &source);
        if (!error && !source)
            error = not_found("volume", request->of_volume);
    }
    if (!error)
        error = snapshot_list(engine, source, after, limit_of(request->max_entries), arena, &page);
    if (error)
        return error;
    reply->snapshots = arena_alloc(arena, page.count * sizeof(void *));
    for (size_t i = 0; i < page.count && !error; i++)
        error = inventory_make_snapshot(engine, page.snapshots[i], arena,
                                        &reply->snapshots[reply->n_snapshots++]);
    if (page.next)
        reply->next_token = ids_print(ID_SNAPSHOT, page.next, arena);
    return error;
}

const struct skycap_v1_inventory inventory_handlers = {
    .get_volume = {get_volume},
    .list_volumes = {list_volumes},
    .get_snapshot = {get_snapshot},
    .list_snapshots = {list_snapshots},
};
