/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching: see fetch.h. */
#include "cluster/fetch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "proto/transfer.rpc.h"
#include "rpc/client/channel.h"
#include "volumes/handle.h"

#define CALL_NS UINT64_C(60000000000)
#define LOOK_MS 50 /* interval of checks whether the copy is cancelled */

struct fetcher {
    struct remote_data data;
    struct cluster *cluster;
    char *connection;
    struct runtime *runtime;
};

/* ---- the node ---- */

/* A reference to the node that has made the handle. */
static struct error *
find_node(const struct fetcher *fetcher, const char *handle, struct remote **out)
{
    char home[HANDLE_HOME_SIZE];
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(fetcher->cluster, &arena);
    if (!handle_read_home(handle, home))
        return error_new(CODE_NOT_FOUND, "\"%s\" does not tell its node", handle);
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        if (strcmp(member->home, home) != 0)
            continue;
        if (member->is_expired)
            return error_new(CODE_UNAVAILABLE, "node \"%s\" is lost", member->id);
        return cluster_remote(fetcher->cluster, member, out);
    }
    return error_new(CODE_UNAVAILABLE, "the node of \"%s\" is not registered", handle);
}

/* ---- open and close ---- */

static void
read_source(const Skycap__V1__OpenTransferReply *reply, struct arena *arena,
            struct remote_source *out)
{
    *out = (struct remote_source){
        .snapshot = arena_string(arena, reply->snapshot),
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
    if (size && size < BACKEND_HANDLE_SIZE && reply->size_bytes >= 0)
        return NULL;
    return error_new(CODE_INTERNAL, "the other node has opened something that is no snapshot");
}

static struct error *
open_source(void *context, enum source_kind kind, const char *handle, const char *transfer_id,
            struct arena *arena, struct remote_source *out)
{
    struct fetcher *fetcher = context;
    struct remote *remote;
    Skycap__V1__OpenTransferRequest request = SKYCAP__V1__OPEN_TRANSFER_REQUEST__INIT;
    Skycap__V1__OpenTransferReply *reply;
    struct error *error = find_node(fetcher, handle, &remote);
    if (error)
        return error;
    struct call *call = call_new_detached(fetcher->runtime, CALL_NS);
    request.connection = fetcher->connection;
    request.handle = (char *)handle;
    request.is_snapshot = kind == SOURCE_SNAPSHOT;
    request.transfer_id = (char *)transfer_id;
    error = remote_ask(remote, call, SKYCAP_V1_TRANSFER_OPEN, &request.base, CALL_NS, &reply);
    if (!error)
        error = check_source(reply);
    if (!error)
        read_source(reply, arena, out);
    call_free_detached(call);
    remote_release(remote);
    return error;
}

/* What fails here is deleted later: see csi/transfer.c. */
static void
close_source(void *context, const char *snapshot)
{
    struct fetcher *fetcher = context;
    struct remote *remote;
    Skycap__V1__CloseTransferRequest request = SKYCAP__V1__CLOSE_TRANSFER_REQUEST__INIT;
    Skycap__V1__CloseTransferReply *reply;
    struct error *error AUTO(error_cleanup) = find_node(fetcher, snapshot, &remote);
    if (error)
        return;
    struct call *call = call_new_detached(fetcher->runtime, CALL_NS);
    request.connection = fetcher->connection;
    request.snapshot = (char *)snapshot;
    error = remote_ask(remote, call, SKYCAP_V1_TRANSFER_CLOSE, &request.base, CALL_NS, &reply);
    call_free_detached(call);
    remote_release(remote);
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
take_reply(const struct remote_fetch *fetch, const Skycap__V1__FetchReply *reply, bool *has_ended,
           struct stream_position *end)
{
    switch (reply->what_case) {
    case SKYCAP__V1__FETCH_REPLY__WHAT_EXPECTED_BYTES:
        fetch->expect(fetch->context, reply->expected_bytes);
        return NULL;
    case SKYCAP__V1__FETCH_REPLY__WHAT_DATA:
        return fetch->sink.write(fetch->sink.context, reply->data.data, reply->data.len);
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

/* Takes messages until the last one. */
static struct error *
receive(struct client_call *stream, const struct remote_fetch *fetch, struct stream_position *end)
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
        error = take_reply(fetch, reply, &has_ended, end);
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
receive_or_cancel(struct client_call *stream, const struct remote_fetch *fetch,
                  struct stream_position *end)
{
    struct canceller canceller = {.fetch = fetch, .stream = stream};
    int failed = pthread_create(&canceller.thread, NULL, wait_for_cancel, &canceller);
    if (failed)
        return error_from_errno(failed, "start the thread that cancels a transfer");
    struct error *error = receive(stream, fetch, end);
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
    struct error *error = find_node(fetcher, fetch->snapshot, &remote);
    if (error)
        return error;
    struct call *call = call_new_detached(fetcher->runtime, 0);
    print_position(&fetch->from, &from);
    request.connection = fetcher->connection;
    request.snapshot = (char *)fetch->snapshot;
    request.from = &from;
    error = remote_stream(remote, call, SKYCAP_V1_TRANSFER_FETCH, &request.base, &stream);
    if (!error) {
        error = receive_or_cancel(stream, fetch, end);
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
    fetcher->data = (struct remote_data){open_source, fetch_data, close_source, fetcher};
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
