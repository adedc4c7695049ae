/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching: see fetch.h. */
#include "cluster/fetch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "message/message_bytes.h"
#include "proto/transfer.rpc.h"
#include "rpc/client/channel.h"
#include "stream/stream_zstd.h"
#include "volumes/handle.h"

#define CALL_NS UINT64_C(60000000000)
#define FIND_USE_NS UINT64_C(5000000000)
#define LOOK_MS 50 /* interval of checks whether the copy is cancelled */

struct fetcher {
    struct remote_data data;
    struct cluster *cluster;
    char *connection;
    struct runtime *runtime;
};

/* ---- the node ---- */

/* A reference to the node with this id; "": the one that has made the handle. */
static struct error *
find_node(const struct fetcher *fetcher, const char *node_id, const char *handle,
          struct remote **out)
{
    char home[HANDLE_HOME_SIZE];
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(fetcher->cluster, &arena);
    if (!node_id[0] && !handle_read_home(handle, home))
        return error_new(CODE_NOT_FOUND, "\"%s\" does not tell its node", handle);
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        if (node_id[0] ? strcmp(member->id, node_id) != 0 : strcmp(member->home, home) != 0)
            continue;
        if (member->is_expired)
            return error_new(CODE_UNAVAILABLE, "node \"%s\" is lost", member->id);
        return cluster_remote(fetcher->cluster, member, out);
    }
    if (node_id[0])
        return error_new(CODE_UNAVAILABLE, "node \"%s\" is not registered", node_id);
    return error_new(CODE_UNAVAILABLE, "the node of \"%s\" is not registered", handle);
}

/* ---- open and close ---- */

/* In the arena. "" unless it is one of those that the request has. */
static const char *
read_base(const Skycap__V1__OpenTransferReply *reply, const struct remote_open *request,
          struct arena *arena)
{
    for (size_t i = 0; i < request->have_count; i++)
        if (strcmp(request->have[i], reply->base_snapshot) == 0)
            return arena_string(arena, reply->base_snapshot);
    return "";
}

/* A copy in the arena; NULL: there is none. */
static volume_record *
read_volume(const Skycap__V1__OpenTransferReply *reply, struct arena *arena)
{
    const ProtobufCBinaryData *bytes = &reply->volume_record;
    if (!bytes->len)
        return NULL;
    const void *own = arena_copy(arena, bytes->data, bytes->len);
    volume_record *record = (volume_record *)message_bytes_unpack(
        &skycap__records__volume_record__descriptor, own, bytes->len, arena);
    return record && strcmp(record->handle, reply->volume) == 0 ? record : NULL;
}

static void
read_source(const Skycap__V1__OpenTransferReply *reply, const struct remote_open *request,
            const char *node_id, struct arena *arena, struct remote_source *out)
{
    *out = (struct remote_source){
        .snapshot = arena_string(arena, reply->snapshot),
        .base = read_base(reply, request, arena),
        .node_id = node_id,
        .volume = arena_string(arena, reply->volume),
        .volume_record = read_volume(reply, arena),
        .created_ns = reply->created_ns,
        .epoch = reply->epoch,
        .can_be_base = reply->can_be_base,
        .kind = reply->is_image ? KIND_IMAGE : KIND_TREE,
        .size_bytes = reply->size_bytes,
        .fs_type = arena_string(arena, reply->fs_type),
        .formatted_bytes = reply->formatted_bytes,
        .blank = reply->blank,
        .sector_bytes = reply->sector_bytes,
        .nocow = reply->nocow,
    };
}

static struct error *
check_source(const Skycap__V1__OpenTransferReply *reply)
{
    size_t size = strlen(reply->snapshot);
    if (size && size < BACKEND_HANDLE_SIZE && strlen(reply->volume) < BACKEND_HANDLE_SIZE &&
        reply->size_bytes >= 0)
        return NULL;
    return error_new(CODE_INTERNAL, "the other node has opened something that is no snapshot");
}

static struct error *
open_source(void *context, const struct remote_open *what, struct arena *arena,
            struct remote_source *out)
{
    struct fetcher *fetcher = context;
    struct remote *remote;
    Skycap__V1__OpenTransferRequest request = SKYCAP__V1__OPEN_TRANSFER_REQUEST__INIT;
    Skycap__V1__OpenTransferReply *reply;
    struct error *error = find_node(fetcher, what->node_id, what->handle, &remote);
    if (error)
        return error;
    struct call *call = call_new_detached(fetcher->runtime, CALL_NS);
    request.connection = fetcher->connection;
    request.handle = (char *)what->handle;
    request.is_snapshot = what->kind == SOURCE_SNAPSHOT;
    request.transfer_id = (char *)what->transfer_id;
    request.node_id = (char *)cluster_node_id(fetcher->cluster);
    request.epoch = what->epoch;
    request.is_spread = what->is_spread;
    request.have = (char **)what->have;
    request.n_have = what->have_count;
    error = remote_ask(remote, call, SKYCAP_V1_TRANSFER_OPEN, &request.base, CALL_NS, &reply);
    if (!error)
        error = check_source(reply);
    if (!error)
        read_source(reply, what, arena_string(arena, remote_node_id(remote)), arena, out);
    call_free_detached(call);
    remote_release(remote);
    return error;
}

/* What fails here is deleted later: see volumes/transfers_left.h. */
static void
end_source(struct fetcher *fetcher, const char *node_id, const char *snapshot, bool is_kept)
{
    struct remote *remote;
    Skycap__V1__CloseTransferRequest request = SKYCAP__V1__CLOSE_TRANSFER_REQUEST__INIT;
    Skycap__V1__CloseTransferReply *reply;
    struct error *error AUTO(error_cleanup) = find_node(fetcher, node_id, snapshot, &remote);
    if (error)
        return;
    struct call *call = call_new_detached(fetcher->runtime, CALL_NS);
    request.connection = fetcher->connection;
    request.snapshot = (char *)snapshot;
    request.keep = is_kept;
    request.node_id = (char *)cluster_node_id(fetcher->cluster);
    error_free(remote_ask(remote, call, SKYCAP_V1_TRANSFER_CLOSE, &request.base, CALL_NS, &reply));
    call_free_detached(call);
    remote_release(remote);
}

static void
close_source(void *context, const char *node_id, const char *snapshot)
{
    end_source(context, node_id, snapshot, false);
}

static void
keep_source(void *context, const char *node_id, const char *snapshot)
{
    end_source(context, node_id, snapshot, true);
}

/* ---- what was not closed ---- */

static struct error *
find_use(void *context, const char *node_id, const char *snapshot, const char *transfer_id,
         struct remote_use *out)
{
    struct fetcher *fetcher = context;
    struct remote *remote;
    Skycap__V1__FindTransferUseRequest request = SKYCAP__V1__FIND_TRANSFER_USE_REQUEST__INIT;
    Skycap__V1__FindTransferUseReply *reply;
    struct error *error = find_node(fetcher, node_id, snapshot, &remote);
    if (error)
        return error;
    struct call *call = call_new_detached(fetcher->runtime, FIND_USE_NS);
    request.connection = fetcher->connection;
    request.snapshot = (char *)snapshot;
    request.transfer_id = (char *)transfer_id;
    error =
        remote_ask(remote, call, SKYCAP_V1_TRANSFER_FIND_USE, &request.base, FIND_USE_NS, &reply);
    if (!error)
        *out = (struct remote_use){reply->is_used, reply->is_kept};
    call_free_detached(call);
    remote_release(remote);
    return error;
}

/* ---- fetch ---- */

static struct error *
read_end(const Skycap__V1__TransferPosition *message, struct stream_position *out)
{
    if (message->sum.len != sizeof out->sum)
        return error_new(CODE_DATA_LOSS, "the end of a transfer has a sum of %zu bytes",
                         message->sum.len);
    out->offset = message->offset;
    memcpy(out->sum, message->sum.data, sizeof out->sum);
    return NULL;
}

static struct error *
take_compressed(const struct remote_fetch *fetch, const Skycap__V1__CompressedData *packed,
                struct arena *arena)
{
    if (packed->size > STREAM_ZSTD_MOST)
        return error_new(CODE_DATA_LOSS,
                         "a compressed piece of a transfer has %u bytes, more than %u",
                         packed->size, STREAM_ZSTD_MOST);
    uint8_t *bytes = arena_alloc(arena, packed->size);
    struct error *error =
        stream_zstd_unpack(packed->data.data, packed->data.len, bytes, packed->size);
    return error ? error : fetch->sink.write(fetch->sink.context, bytes, packed->size);
}

static struct error *
take_reply(const struct remote_fetch *fetch, const Skycap__V1__FetchReply *reply,
           struct arena *arena, bool *has_ended, struct stream_position *end)
{
    switch (reply->what_case) {
    case SKYCAP__V1__FETCH_REPLY__WHAT_EXPECTED_BYTES:
        fetch->expect(fetch->context, reply->expected_bytes);
        return NULL;
    case SKYCAP__V1__FETCH_REPLY__WHAT_DATA:
        return fetch->sink.write(fetch->sink.context, reply->data.data, reply->data.len);
    case SKYCAP__V1__FETCH_REPLY__WHAT_COMPRESSED:
        return take_compressed(fetch, reply->compressed, arena);
    case SKYCAP__V1__FETCH_REPLY__WHAT_END:
        *has_ended = true;
        return read_end(reply->end, end);
    default:
        return NULL;
    }
}

/*
 * Ends the stream when the copy is cancelled: the other node may be silent for long, for example
 * while it looks for the place to go on.
 */
struct canceller {
    const struct remote_fetch *fetch;
    struct client_call *stream;
    pthread_t thread;
    atomic_bool is_over;
};

static void *
wait_for_cancel(void *argument)
{
    struct canceller *canceller = argument;
    while (!atomic_load(&canceller->is_over)) {
        if (canceller->fetch->cancelled(canceller->fetch->context)) {
            client_call_cancel(canceller->stream);
            return NULL;
        }
        usleep(LOOK_MS * 1000);
    }
    return NULL;
}

static uint64_t
data_bytes(const Skycap__V1__FetchReply *reply)
{
    return reply->what_case == SKYCAP__V1__FETCH_REPLY__WHAT_DATA ? reply->data.len
           : reply->what_case == SKYCAP__V1__FETCH_REPLY__WHAT_COMPRESSED
               ? reply->compressed->data.len
               : 0;
}

/* Takes messages until the last one. */
static struct error *
receive(struct cluster *cluster, struct client_call *stream, const struct remote_fetch *fetch,
        struct stream_position *end)
{
    bool has_ended = false;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (;;) {
        Skycap__V1__FetchReply *reply;
        struct error *error = client_call_recv(stream, &arena, &reply);
        if (error)
            return error;
        if (!reply)
            break;
        cluster_count_received(cluster, data_bytes(reply));
        error = take_reply(fetch, reply, &arena, &has_ended, end);
        if (error)
            return error;
        arena_clear(&arena);
    }
    struct error *error = client_call_finish(stream);
    if (!error && !has_ended)
        error = error_new(CODE_UNAVAILABLE, "the transfer has ended too early");
    return error;
}

static struct error *
receive_or_cancel(struct cluster *cluster, struct client_call *stream,
                  const struct remote_fetch *fetch, struct stream_position *end)
{
    struct canceller canceller = {.fetch = fetch, .stream = stream};
    int failed = pthread_create(&canceller.thread, NULL, wait_for_cancel, &canceller);
    if (failed)
        return error_from_errno(failed, "start the thread that cancels a transfer");
    struct error *error = receive(cluster, stream, fetch, end);
    atomic_store(&canceller.is_over, true);
    pthread_join(canceller.thread, NULL);
    return error;
}

static void
print_position(const struct stream_position *position, Skycap__V1__TransferPosition *out)
{
    out->offset = position->offset;
    out->sum.data = (uint8_t *)position->sum;
    out->sum.len = sizeof position->sum;
}

static struct error *
fetch_data(void *context, const struct remote_fetch *fetch, struct stream_position *end)
{
    struct fetcher *fetcher = context;
    struct remote *remote;
    struct client_call *stream;
    Skycap__V1__FetchRequest request = SKYCAP__V1__FETCH_REQUEST__INIT;
    Skycap__V1__TransferPosition from = SKYCAP__V1__TRANSFER_POSITION__INIT;
    struct error *error = find_node(fetcher, fetch->node_id, fetch->snapshot, &remote);
    if (error)
        return error;
    struct call *call = call_new_detached(fetcher->runtime, 0);
    print_position(&fetch->from, &from);
    request.connection = fetcher->connection;
    request.snapshot = (char *)fetch->snapshot;
    request.base_snapshot = (char *)fetch->base;
    request.takes_zstd = true;
    request.bytes_per_second = fetch->bytes_per_second;
    if (fetch->is_spread)
        request.spread_node = (char *)cluster_node_id(fetcher->cluster);
    request.from = &from;
    error = remote_stream(remote, call, SKYCAP_V1_TRANSFER_FETCH, &request.base, &stream);
    if (!error) {
        error = receive_or_cancel(fetcher->cluster, stream, fetch, end);
        client_call_free(stream);
    }
    call_free_detached(call);
    remote_release(remote);
    return error;
}

/* ---- life ---- */

struct fetcher *
fetcher_new(struct cluster *cluster, const char *connection, struct runtime *runtime)
{
    struct fetcher *fetcher = memory_zeroed(sizeof *fetcher);
    fetcher->cluster = cluster_share(cluster);
    fetcher->connection = memory_string(connection);
    fetcher->runtime = runtime;
    fetcher->data =
        (struct remote_data){open_source, fetch_data, close_source, keep_source, find_use, fetcher};
    return fetcher;
}

void
fetcher_free(struct fetcher *fetcher)
{
    if (!fetcher)
        return;
    cluster_release(fetcher->cluster);
    free(fetcher->connection);
    free(fetcher);
}

const struct remote_data *
fetcher_data(const struct fetcher *fetcher)
{
    return &fetcher->data;
}
