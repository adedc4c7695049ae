/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap snapshot diff: the extents that a snapshot holds, or that differ from an older one. A list
 * may be long: it is printed as it comes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/size_text.h"
#include "cli/snapshot.h"

struct sum {
    bool as_json;
    uint64_t extents;
    int64_t bytes;
    int64_t capacity_bytes;
};

static void
add(struct sum *sum, int64_t capacity_bytes, Csi__V1__BlockMetadata *const *extents, size_t count)
{
    if (!sum->extents && count)
        printf("%20s %20s\n", "OFFSET", "BYTES");
    for (size_t i = 0; i < count; i++) {
        printf("%20" PRId64 " %20" PRId64 "\n", extents[i]->byte_offset, extents[i]->size_bytes);
        sum->bytes += extents[i]->size_bytes;
    }
    sum->extents += count;
    sum->capacity_bytes = capacity_bytes;
}

static struct error *
take_allocated(void *context, const void *message)
{
    struct sum *sum = context;
    const Csi__V1__GetMetadataAllocatedResponse *reply = message;
    if (sum->as_json)
        client_print_json(reply, 0);
    else
        add(sum, reply->volume_capacity_bytes, reply->block_metadata, reply->n_block_metadata);
    return NULL;
}

static struct error *
take_delta(void *context, const void *message)
{
    struct sum *sum = context;
    const Csi__V1__GetMetadataDeltaResponse *reply = message;
    if (sum->as_json)
        client_print_json(reply, 0);
    else
        add(sum, reply->volume_capacity_bytes, reply->block_metadata, reply->n_block_metadata);
    return NULL;
}

static struct error *
list_allocated(struct client *client, const snapshot_info *snapshot, struct sum *sum)
{
    Csi__V1__GetMetadataAllocatedRequest request = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    request.snapshot_id = snapshot->snapshot->snapshot_id;
    return client_ask_stream(client, "csi.v1.SnapshotMetadata/GetMetadataAllocated", &request,
                             take_allocated, sum);
}

static struct error *
list_delta(struct client *client, const snapshot_info *snapshot, const char *base, struct sum *sum)
{
    Csi__V1__GetMetadataDeltaRequest request = CSI__V1__GET_METADATA_DELTA_REQUEST__INIT;
    snapshot_info *older;
    struct error *error = inventory_find_snapshot(client, base, &older);
    if (error)
        return error;
    request.base_snapshot_id = older->snapshot->snapshot_id;
    request.target_snapshot_id = snapshot->snapshot->snapshot_id;
    return client_ask_stream(client, "csi.v1.SnapshotMetadata/GetMetadataDelta", &request,
                             take_delta, sum);
}

static void
print_sum(const struct sum *sum, const char *base)
{
    char bytes[32], capacity[32];
    size_text_print(sum->bytes, bytes, sizeof bytes);
    size_text_print(sum->capacity_bytes, capacity, sizeof capacity);
    if (!sum->extents)
        puts(base ? "nothing differs" : "it holds no data");
    else
        printf("%s of %s %s, in %" PRIu64 " extent%s\n", bytes, capacity,
               base ? "differ" : "hold data", sum->extents, sum->extents == 1 ? "" : "s");
}

VERB(snapshot_run_diff)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap snapshot diff SNAPSHOT [BASE] [options]",
        "Lists the extents of a block or file system image that hold data in SNAPSHOT; with BASE, "
        "an "
        "older snapshot\nof the same volume, those that differ. With -o json each message of the "
        "server is one line.",
        NULL,
        0,
        1,
        2};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    struct sum sum = {.as_json = client.as_json};
    const char *base = client.word_count > 1 ? client.words[1] : NULL;
    snapshot_info *snapshot;
    error = inventory_find_snapshot(&client, client.words[0], &snapshot);
    if (!error)
        error = base ? list_delta(&client, snapshot, base, &sum)
                     : list_allocated(&client, snapshot, &sum);
    if (!error && !sum.as_json)
        print_sum(&sum, base);
    return error;
}
