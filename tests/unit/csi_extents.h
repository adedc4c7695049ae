/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of csi.v1.SnapshotMetadata, read to their end and held to the rules that hold for each of them. */
#ifndef UNIT_CSI_EXTENTS_H
#define UNIT_CSI_EXTENTS_H

#include "csi_ends.h"

struct extent_list {
    struct extent *extents;
    size_t count;
    size_t room;
    size_t messages;
    int64_t capacity_bytes;
};

static inline void
extent_list_clear(struct extent_list *list)
{
    free(list->extents);
    *list = (struct extent_list){0};
}

/* The two answers have the same fields, in the same places. */
static inline void
extent_list_take(struct extent_list *list, const Csi__V1__GetMetadataDeltaResponse *message,
                 int64_t offset, int32_t max_results)
{
    CHECK_NUMBER(message->block_metadata_type, CSI__V1__BLOCK_METADATA_TYPE__VARIABLE_LENGTH);
    CHECK(!list->messages || message->volume_capacity_bytes == list->capacity_bytes);
    CHECK(!max_results || message->n_block_metadata <= (size_t)max_results);
    list->messages++;
    list->capacity_bytes = message->volume_capacity_bytes;
    for (size_t i = 0; i < message->n_block_metadata; i++) {
        const Csi__V1__BlockMetadata *found = message->block_metadata[i];
        int64_t end = list->count ? (int64_t)(list->extents[list->count - 1].offset +
                                              list->extents[list->count - 1].size)
                                  : 0;
        CHECK(found->byte_offset >= end);
        CHECK(found->size_bytes > 0);
        CHECK(found->byte_offset + found->size_bytes > offset);
        CHECK(found->byte_offset + found->size_bytes <= list->capacity_bytes);
        if (list->count == list->room) {
            list->room = 2 * list->room + 64;
            list->extents = realloc(list->extents, list->room * sizeof *list->extents);
        }
        list->extents[list->count++] =
            (struct extent){(uint64_t)found->byte_offset, (uint64_t)found->size_bytes};
    }
}

_Static_assert(sizeof(Csi__V1__GetMetadataDeltaResponse) ==
                       sizeof(Csi__V1__GetMetadataAllocatedResponse) &&
                   offsetof(Csi__V1__GetMetadataDeltaResponse, block_metadata) ==
                       offsetof(Csi__V1__GetMetadataAllocatedResponse, block_metadata),
               "the answers differ");

/* The stream with `base_id`, or of what is allocated if that is NULL. */
static inline struct client_call *
extent_list_open(struct csi_ends *csi, const char *base_id, const char *id, int64_t offset,
                 int32_t max_results)
{
    Csi__V1__GetMetadataDeltaRequest delta = CSI__V1__GET_METADATA_DELTA_REQUEST__INIT;
    Csi__V1__GetMetadataAllocatedRequest all = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    struct client_call *call;
    delta.base_snapshot_id = (char *)base_id;
    delta.target_snapshot_id = all.snapshot_id = (char *)id;
    delta.starting_offset = all.starting_offset = offset;
    delta.max_results = all.max_results = max_results;
    succeed(client_call_open(csi->ends.channel,
                             base_id ? CSI_V1_SNAPSHOT_METADATA_GET_METADATA_DELTA
                                     : CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED,
                             NULL, &call));
    succeed(client_call_send(call, base_id ? &delta.base : &all.base));
    client_call_close_send(call);
    return call;
}

/* False at the end of the stream. */
static inline bool
extent_list_recv(struct extent_list *list, struct client_call *call, int64_t offset,
                 int32_t max_results)
{
    struct arena arena AUTO(arena_clear);
    Csi__V1__GetMetadataDeltaResponse *message;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    succeed(client_call_recv(call, &arena, &message));
    if (message)
        extent_list_take(list, message, offset, max_results);
    return message != NULL;
}

/* The whole stream, and how it ended. */
static inline struct error *
extent_list_read(struct extent_list *list, struct csi_ends *csi, const char *base_id,
                 const char *id, int64_t offset, int32_t max_results)
{
    *list = (struct extent_list){0};
    struct client_call *call = extent_list_open(csi, base_id, id, offset, max_results);
    while (extent_list_recv(list, call, offset, max_results))
        ;
    struct error *error = client_call_finish(call);
    client_call_free(call);
    return error;
}

#endif
