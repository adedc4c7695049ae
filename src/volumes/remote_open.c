/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources on other nodes: see remote_open.h.
 *
 * The volume that a snapshot was taken of is known only to its node. So a snapshot is opened first
 * without and then, if this node has snapshots of that volume, with them. Opening a snapshot leaves
 * nothing behind.
 */
#include "volumes/remote_open.h"

#include <string.h>

#include "volumes/bases.h"
#include "volumes/handle.h"

static struct error *
open_with(struct engine *engine, const struct remote_data *remote, struct remote_open *what,
          const char *volume, struct arena *arena, struct remote_source *out)
{
    struct bases_list have;
    struct error *error = bases_find(engine, volume, arena, &have);
    if (error)
        return error;
    what->have = have.handles;
    what->have_count = have.count;
    if (what->kind == SOURCE_SNAPSHOT && !have.count)
        return NULL; /* `out` says it already */
    return remote->open(remote->context, what, arena, out);
}

/* The other node may be taking the snapshot still. */
static bool
is_worth_another(const struct error *error)
{
    return error && (error->code == CODE_DEADLINE_EXCEEDED || error->code == CODE_UNAVAILABLE ||
                     error->code == CODE_ABORTED);
}

static struct error *
open_volume(struct engine *engine, const struct remote_data *remote, struct remote_open *what,
            const char *name, struct arena *arena, struct remote_source *out)
{
    char id[BACKEND_HANDLE_SIZE];
    transfer_ids_begin(engine, name, what->handle, id);
    what->transfer_id = id;
    struct error *error = open_with(engine, remote, what, what->handle, arena, out);
    transfer_ids_end(engine, id, is_worth_another(error));
    what->transfer_id = "";
    return error;
}

static struct error *
open_snapshot(struct engine *engine, const struct remote_data *remote, struct remote_open *what,
              struct arena *arena, struct remote_source *out)
{
    char id[BACKEND_HANDLE_SIZE];
    handle_make(engine, id);
    what->transfer_id = id;
    struct error *error = remote->open(remote->context, what, arena, out);
    if (!error)
        error = open_with(engine, remote, what, out->volume, arena, out);
    what->transfer_id = "";
    return error;
}

struct error *
remote_open_source(struct engine *engine, const struct volume_request *request, const char *node_id,
                   struct arena *arena, struct remote_source *out, const struct remote_data **by)
{
    struct remote_open what = {
        .kind = request->source_kind, .handle = request->source_handle, .node_id = node_id};
    *by = atomic_load(&engine->remote);
    if (!*by)
        return error_new(CODE_UNAVAILABLE, "this node has not joined its cluster yet");
    return what.kind == SOURCE_VOLUME ? open_volume(engine, *by, &what, request->name, arena, out)
                                      : open_snapshot(engine, *by, &what, arena, out);
}

snapshot_record *
remote_open_record(const struct remote_source *source, struct arena *arena)
{
    snapshot_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__snapshot_record__init(record);
    if (!source->can_be_base || !source->volume[0])
        return NULL;
    record->handle = (char *)source->snapshot;
    record->source_handle = (char *)source->volume;
    record->kind = source->kind == KIND_IMAGE ? SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE
                                              : SKYCAP__RECORDS__VOLUME_RECORD__KIND__TREE;
    record->fs_type = (char *)source->fs_type;
    record->size_bytes = source->size_bytes;
    record->formatted_bytes = source->formatted_bytes;
    record->blank = source->blank;
    record->sector_bytes = source->sector_bytes;
    record->nocow = source->nocow;
    record->created_ns = source->created_ns;
    record->epoch = source->epoch;
    record->peer_node = (char *)source->node_id;
    record->volume = source->volume_record;
    return record;
}
