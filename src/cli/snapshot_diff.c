/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap snapshot diff: the extents that a snapshot holds, or that differ from an older one. The
 * list may be long, so it is printed as it arrives.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/size_text.h"
#include "cli/inventory.h"

struct sum {
    bool as_json;
    uint64_t extents;
    int64_t bytes;
    int64_t capacity_bytes;
};

static struct error *
print(struct sum *sum, const void *message, int64_t capacity_bytes,
      Csi__V1__BlockMetadata *const *extents, size_t count)
{
    if (sum->as_json) {
        client_print_json(message, 0);
        return NULL;
    }
    if (!sum->extents && count)
        printf("%20s %20s\n", "OFFSET", "BYTES");
    for (size_t i = 0; i < count; i++) {
        printf("%20" PRId64 " %20" PRId64 "\n", extents[i]->byte_offset, extents[i]->size_bytes);
        sum->bytes += extents[i]->size_bytes;
    }
    sum->extents += count;
    sum->capacity_bytes = capacity_bytes;
    return NULL;
}

static struct error *
print_allocated(void *context, const void *message)
{
    const Csi__V1__GetMetadataAllocatedResponse *reply = message;
    return print(context, message, reply->volume_capacity_bytes, reply->block_metadata,
                 reply->n_block_metadata);
}

static struct error *
print_delta(void *context, const void *message)
{
    const Csi__V1__GetMetadataDeltaResponse *reply = message;
    return print(context, message, reply->volume_capacity_bytes, reply->block_metadata,
                 reply->n_block_metadata);
}

static struct error *
list_allocated(struct client *client, const snapshot_info *snapshot, struct sum *sum)
{
    Csi__V1__GetMetadataAllocatedRequest request = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    request.snapshot_id = snapshot->snapshot->snapshot_id;
    return client_ask_stream(client, "csi.v1.SnapshotMetadata/GetMetadataAllocated", &request,
                             print_allocated, sum);
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
                             print_delta, sum);
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

static struct error *
diff(struct client *client)
{
    struct sum sum = {.as_json = client->as_json};
    const char *base = client->word_count > 1 ? client->words[1] : NULL;
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, client->words[0], &snapshot);
    if (!error)
        error = base ? list_delta(client, snapshot, base, &sum)
                     : list_allocated(client, snapshot, &sum);
    if (!error && !sum.as_json)
        print_sum(&sum, base);
    return error;
}

const struct command snapshot_diff_command = {
    .name = "diff",
    .summary = "list blocks that hold data, or that differ from an older snapshot",
    .words = "SNAPSHOT [BASE]",
    .help = "Lists the extents of a block or file system image that hold data in SNAPSHOT; with "
            "BASE, an older snapshot\nof the same volume, those that differ. With -o json each "
            "message of the server is one line.",
    .run = diff,
};
