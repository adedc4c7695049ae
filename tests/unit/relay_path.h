/* SPDX-License-Identifier: Apache-2.0 */
/* A client, a server that changes messages and passes them on, and the server behind it, which the test makes. */
#ifndef UNIT_RELAY_PATH_H
#define UNIT_RELAY_PATH_H

#include "relay_ends.h"

/* What the server behind has seen. */
struct seen {
    struct gate entered;
    struct gate may_leave;
    struct gate left;
    bool was_cancelled;
    uint64_t time_left;
    char source[64];
    char tenant[64];
    char added[64];
    size_t agents;
    size_t unknown_fields;
};

struct path {
    struct ends behind;
    struct relay_ends ends;
    struct seen seen;
};

static inline void
path_open_with(struct path *path, const struct csi_v1_controller *behind,
               const struct csi_v1_controller *front, const struct channel_options *options)
{
    path->seen = (struct seen){.entered = GATE_INIT, .may_leave = GATE_INIT, .left = GATE_INIT};
    ends_open(&path->behind, &(struct ends_setup){.service = &csi_v1_controller_service,
                                                  .handlers = behind,
                                                  .context = &path->seen});
    relay_ends_open(&path->ends, front, path->behind.address, options);
}

static inline void
path_open(struct path *path, const struct csi_v1_controller *behind)
{
    path_open_with(path, behind, &relaying_handlers, &(struct channel_options){0});
}

static inline void
path_close(struct path *path)
{
    relay_ends_close(&path->ends);
    ends_close(&path->behind);
}

/* ---- the server behind: makes snapshots, and notes what it was asked ---- */

static inline void
add_unknown_field(struct arena *arena, ProtobufCMessage *message, const char *value)
{
    ProtobufCMessageUnknownField *field = arena_zeroed(arena, sizeof *field);
    size_t size = strlen(value);
    uint8_t *data = (uint8_t *)arena_alloc(arena, size + 1);
    data[0] = (uint8_t)size;
    memcpy(data + 1, value, size);
    *field = (ProtobufCMessageUnknownField){
        .tag = 9000,
        .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
        .len = size + 1,
        .data = data,
    };
    message->n_unknown_fields = 1;
    message->unknown_fields = field;
}

static inline const char *
find_unknown_field(const ProtobufCMessage *message)
{
    if (message->n_unknown_fields != 1 || message->unknown_fields->tag != 9000)
        return NULL;
    return (const char *)message->unknown_fields->data + 1;
}

static inline void
note_text(char out[static 64], const char *text)
{
    snprintf(out, 64, "%s", text ? text : "");
}

static inline struct error *
add_answers_metadata(struct call *call)
{
    struct error *error = call_add_header(call, "x-from", "behind", 6);
    return error ? error : call_add_trailer(call, "x-bytes-bin", "\0\xff", 2);
}

static inline struct error *
snapshot(struct call *call, const Csi__V1__CreateSnapshotRequest *request,
         Csi__V1__CreateSnapshotResponse *reply)
{
    struct seen *seen = call_context(call);
    note_text(seen->source, request->source_volume_id);
    note_text(seen->tenant, metadata_find(call_metadata(call), "x-tenant"));
    note_text(seen->added, metadata_find(call_metadata(call), "x-added"));
    seen->agents = metadata_count(call_metadata(call), "user-agent");
    seen->time_left = call_time_left(call);
    seen->unknown_fields = request->base.n_unknown_fields;
    Csi__V1__Snapshot *out = arena_alloc(call_arena(call), sizeof *out);
    csi__v1__snapshot__init(out);
    out->snapshot_id = arena_print(call_arena(call), "snapshot of %s", request->source_volume_id);
    out->source_volume_id = request->source_volume_id;
    reply->snapshot = out;
    if (find_unknown_field(&request->base))
        add_unknown_field(call_arena(call), &reply->base, "from behind");
    return add_answers_metadata(call);
}

static const struct csi_v1_controller good_handlers = {.create_snapshot = {snapshot}};

#endif
