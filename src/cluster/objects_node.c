/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that another node keeps: see objects_node.h. */
#include "cluster/objects_node.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/cluster.h"
#include "cluster/node_calls.h"
#include "proto/objects.rpc.h"
#include "repository/objects.h"
#include "repository/patience.h"
#include "rpc/client/channel.h"

#define CALL_MS UINT64_C(60000)
#define PIECE_BYTES (1u << 20)
#define RETRY_MS 60000u
#define PAUSE_MIN_MS 100u
#define PAUSE_MAX_MS 2000u
#define LOOK_MS 50u
#define MOST_OBJECTS (4u << 20) /* of a kind; their names are in memory while they are listed */

struct object_nodes {
    struct repository_nodes places;
    struct node_calls calls;
};

struct node_objects {
    struct objects objects;
    const struct object_nodes *nodes;
    char *node, *name;
    const atomic_bool *is_stopping; /* may be NULL */
};

static struct node_objects *
node_of(struct objects *objects)
{
    return CONTAINER_OF(objects, struct node_objects, objects);
}

/* ---- one request ---- */

/* What is asked, and the way there while it is asked. */
struct question {
    struct node_objects *at;
    const char *key;
    struct remote *remote;
    struct call *call;
    uint64_t wait_ns; /* of the call */
    Skycap__V1__ObjectKey object;
    struct object_name name;
    /* of some */
    uint64_t offset, size, age_ms;
    uint8_t *bytes;
    const uint8_t *put_bytes;
    bool replaces;
    enum object_kind kind;
    struct buffer *names, *sizes;
};

static struct error *
try_once(struct question *q, struct error *(*ask)(struct question *q))
{
    const struct node_calls *calls = &q->at->nodes->calls;
    struct error *error = node_calls_find(calls, q->at->node, &q->remote);
    if (error)
        return error;
    q->wait_ns = patience_left_ms(CALL_MS) * 1000000;
    q->call = call_new_detached(calls->runtime, q->wait_ns);
    error = ask(q);
    call_free_detached(q->call);
    remote_release(q->remote);
    return error;
}

/* Whether nobody waits for the answer any more. */
static bool
is_over(const struct node_objects *at)
{
    return (at->is_stopping && atomic_load(at->is_stopping)) || patience_is_over();
}

static void
rest(const struct node_objects *at, unsigned *pause_ms)
{
    const struct timespec step = {.tv_nsec = LOOK_MS * 1000000L};
    for (unsigned rested_ms = 0; rested_ms < *pause_ms && !is_over(at); rested_ms += LOOK_MS)
        nanosleep(&step, NULL);
    *pause_ms = 2 * *pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : 2 * *pause_ms;
}

/* The node may be restarted, or the way to it cut for a moment. */
static bool
may_pass(const struct error *error)
{
    return error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED ||
           error->code == CODE_CANCELLED;
}

/* A node that is silent for too long is UNAVAILABLE, so that exports and imports wait for it. */
static struct error *
give_up(const struct node_objects *at, struct error *error)
{
    error->code = CODE_UNAVAILABLE;
    return error_wrap(error, "the repository %s of node \"%s\"", at->name, at->node);
}

static struct error *
run(struct question *q, struct error *(*ask)(struct question *q))
{
    uint64_t begin = clock_now_ms();
    unsigned pause_ms = PAUSE_MIN_MS;
    for (;;) {
        struct error *error = try_once(q, ask);
        if (!error || !may_pass(error))
            return error;
        if (is_over(q->at) || clock_now_ms() - begin > patience_repeat_ms(RETRY_MS))
            return give_up(q->at, error);
        error_free(error);
        rest(q->at, &pause_ms);
    }
}

/* The key is KIND/NAME, as objects.c has printed it. */
static void
set_key(struct question *q, struct objects *objects, const char *key)
{
    q->at = node_of(objects);
    q->key = key;
    skycap__v1__object_key__init(&q->object);
    q->object.repository = q->at->name;
    q->object.kind = (uint32_t)strtoul(key, NULL, 16);
    if (object_name_parse(key + 3, &q->name)) {
        q->object.name.data = q->name.bytes;
        q->object.name.len = sizeof q->name.bytes;
    }
}

/* Takes the error of receiving. The status of the call tells more. */
static struct error *
end_stream(struct client_call *stream, struct error *error)
{
    if (error)
        client_call_cancel(stream);
    struct error *status = client_call_finish(stream);
    if (error && (!status || status->code == CODE_CANCELLED)) {
        error_free(status);
        return error;
    }
    error_free(error);
    return status;
}

/* ---- put ---- */

static struct error *
send_pieces(struct client_call *stream, struct question *q)
{
    Skycap__V1__PutObjectRequest piece = SKYCAP__V1__PUT_OBJECT_REQUEST__INIT;
    struct error *error = NULL;
    piece.key = &q->object;
    piece.size = (uint32_t)q->size;
    piece.replaces = q->replaces;
    for (uint64_t at = 0; !error && (at < q->size || piece.key); at += PIECE_BYTES) {
        piece.bytes.data = (uint8_t *)q->put_bytes + at;
        piece.bytes.len = q->size - at < PIECE_BYTES ? q->size - at : PIECE_BYTES;
        error = client_call_send(stream, &piece.base);
        piece.key = NULL;
    }
    client_call_close_send(stream);
    return error;
}

static struct error *
ask_put(struct question *q)
{
    struct client_call *stream;
    Skycap__V1__PutObjectReply *reply = NULL;
    struct error *error = remote_begin(q->remote, q->call, SKYCAP_V1_OBJECTS_PUT, &stream);
    if (error)
        return error;
    /* If sending fails, the answer says why. */
    error_free(send_pieces(stream, q));
    error = client_call_recv(stream, call_arena(q->call), &reply);
    bool is_answered = !error && reply;
    error = end_stream(stream, error);
    client_call_free(stream);
    if (!error && !is_answered)
        error = error_new(CODE_UNAVAILABLE, "the node has not answered");
    return error;
}

/*
 * What this node sends has one limit (sender.h). The turn is taken before the call, whose time is
 * limited, and only once: pieces, so that others get theirs in between.
 */
static void
wait_for_turn(const struct node_objects *at, struct sender *sender, size_t size)
{
    for (size_t done = 0; done < size && !is_over(at); done += PIECE_BYTES) {
        uint64_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
        uint64_t until_ns = clock_now_ns() + sender_take(sender, piece);
        for (uint64_t now_ns; (now_ns = clock_now_ns()) < until_ns && !is_over(at);) {
            uint64_t left_ns = until_ns - now_ns, step_ns = LOOK_MS * UINT64_C(1000000);
            nanosleep(&(struct timespec){.tv_nsec = (long)(left_ns < step_ns ? left_ns : step_ns)},
                      NULL);
        }
    }
}

static struct error *
node_put(struct objects *objects, const char *key, const uint8_t *bytes, size_t size,
         enum objects_put how)
{
    struct question q = {.put_bytes = bytes, .size = size, .replaces = how == OBJECTS_REPLACE};
    set_key(&q, objects, key);
    struct sender *sender = cluster_sender(q.at->nodes->calls.cluster);
    wait_for_turn(q.at, sender, size);
    struct error *error = run(&q, ask_put);
    if (!error)
        sender_count(sender, size, size);
    return error;
}

/* What was put is durable. */
static struct error *
node_sync(struct objects *objects)
{
    (void)objects;
    return NULL;
}

/* ---- get and size ---- */

static struct error *
receive_bytes(struct client_call *stream, struct question *q)
{
    uint64_t done = 0;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    for (;;) {
        Skycap__V1__GetObjectReply *reply;
        struct error *error = client_call_recv(stream, &arena, &reply);
        if (error)
            return error;
        if (!reply)
            break;
        if (reply->bytes.len > q->size - done)
            return error_new(CODE_INTERNAL, "the node sends more than it was asked for");
        if (reply->bytes.len)
            memcpy(q->bytes + done, reply->bytes.data, reply->bytes.len);
        done += reply->bytes.len;
        arena_clear(&arena);
    }
    return done == q->size ? NULL
                           : error_new(CODE_UNAVAILABLE, "the node has sent %llu of %llu bytes",
                                       (unsigned long long)done, (unsigned long long)q->size);
}

static struct error *
ask_get(struct question *q)
{
    struct client_call *stream;
    Skycap__V1__GetObjectRequest request = SKYCAP__V1__GET_OBJECT_REQUEST__INIT;
    request.key = &q->object;
    request.offset = q->offset;
    request.size = (uint32_t)q->size;
    struct error *error =
        remote_stream(q->remote, q->call, SKYCAP_V1_OBJECTS_GET, &request.base, &stream);
    if (error)
        return error;
    error = end_stream(stream, receive_bytes(stream, q));
    client_call_free(stream);
    return error;
}

static struct error *
node_get(struct objects *objects, const char *key, uint64_t offset, uint8_t *bytes, size_t size)
{
    struct question q = {.offset = offset, .size = size, .bytes = bytes};
    if (size > OBJECT_BYTES_MAX)
        return error_new(CODE_DATA_LOSS, "no object has %zu bytes", size);
    set_key(&q, objects, key);
    return run(&q, ask_get);
}

static struct error *
ask_size(struct question *q)
{
    Skycap__V1__SizeObjectRequest request = SKYCAP__V1__SIZE_OBJECT_REQUEST__INIT;
    Skycap__V1__SizeObjectReply *reply;
    request.key = &q->object;
    struct error *error =
        remote_ask(q->remote, q->call, SKYCAP_V1_OBJECTS_SIZE, &request.base, q->wait_ns, &reply);
    if (!error) {
        q->size = reply->size;
        q->age_ms = reply->age_ms;
    }
    return error;
}

static struct error *
node_size(struct objects *objects, const char *key, uint64_t *size, uint64_t *age_ms)
{
    struct question q = {0};
    set_key(&q, objects, key);
    struct error *error = run(&q, ask_size);
    *size = q.size;
    *age_ms = q.age_ms;
    return error;
}

static struct error *
ask_delete(struct question *q)
{
    Skycap__V1__DeleteObjectRequest request = SKYCAP__V1__DELETE_OBJECT_REQUEST__INIT;
    Skycap__V1__DeleteObjectReply *reply;
    request.key = &q->object;
    return remote_ask(q->remote, q->call, SKYCAP_V1_OBJECTS_DELETE, &request.base, q->wait_ns,
                      &reply);
}

static struct error *
node_delete(struct objects *objects, const char *key)
{
    struct question q = {0};
    set_key(&q, objects, key);
    return run(&q, ask_delete);
}

/* ---- lists ---- */

static struct error *
take_names(struct question *q, const Skycap__V1__ListObjectsReply *reply)
{
    if (reply->names.len != reply->n_sizes * OBJECT_NAME_BYTES)
        return error_new(CODE_INTERNAL, "the node has sent a list that is none");
    if (q->names->size / OBJECT_NAME_BYTES + reply->n_sizes > MOST_OBJECTS)
        return error_new(CODE_RESOURCE_EXHAUSTED, "there are more than %u objects of a kind",
                         MOST_OBJECTS);
    if (reply->n_sizes) {
        buffer_append(q->names, reply->names.data, reply->names.len);
        buffer_append(q->sizes, reply->sizes, reply->n_sizes * sizeof *reply->sizes);
    }
    return NULL;
}

static struct error *
receive_names(struct client_call *stream, struct question *q)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    q->names->size = q->sizes->size = 0;
    for (;;) {
        Skycap__V1__ListObjectsReply *reply;
        struct error *error = client_call_recv(stream, &arena, &reply);
        if (error || !reply)
            return error;
        error = take_names(q, reply);
        if (error)
            return error;
        arena_clear(&arena);
    }
}

static struct error *
ask_list(struct question *q)
{
    struct client_call *stream;
    Skycap__V1__ListObjectsRequest request = SKYCAP__V1__LIST_OBJECTS_REQUEST__INIT;
    request.repository = q->at->name;
    request.kind = q->kind;
    struct error *error =
        remote_stream(q->remote, q->call, SKYCAP_V1_OBJECTS_LIST, &request.base, &stream);
    if (error)
        return error;
    error = end_stream(stream, receive_names(stream, q));
    client_call_free(stream);
    return error;
}

/* Nothing is passed on before the list is complete: a list that was cut is asked for again. */
static struct error *
node_list(struct objects *objects, enum object_kind kind, objects_each *each, void *context)
{
    struct buffer names AUTO(buffer_clear) = {0}, sizes AUTO(buffer_clear) = {0};
    struct question q = {.at = node_of(objects), .kind = kind, .names = &names, .sizes = &sizes};
    struct error *error = run(&q, ask_list);
    for (size_t i = 0; !error && i < names.size / OBJECT_NAME_BYTES; i++) {
        struct object_name name = objects_name_at(&names, i * OBJECT_NAME_BYTES);
        uint64_t size;
        memcpy(&size, sizes.bytes + i * sizeof size, sizeof size);
        error = each(&name, size, context);
    }
    return error;
}

/* ---- opening ---- */

static void
node_close(struct objects *objects)
{
    struct node_objects *at = node_of(objects);
    free(at->node);
    free(at->name);
    free(at);
}

static const struct objects_ops node_ops = {
    .put = node_put,
    .sync = node_sync,
    .get = node_get,
    .size = node_size,
    .list = node_list,
    .delete = node_delete,
    .close = node_close,
    .uploads = 3,
};

static struct error *
ask_open(struct question *q)
{
    Skycap__V1__OpenObjectsRequest request = SKYCAP__V1__OPEN_OBJECTS_REQUEST__INIT;
    Skycap__V1__OpenObjectsReply *reply;
    request.repository = q->at->name;
    request.creates = q->replaces;
    return remote_ask(q->remote, q->call, SKYCAP_V1_OBJECTS_OPEN, &request.base, q->wait_ns,
                      &reply);
}

/* Not repeated: who opens a repository decides whether to wait for the node. */
static struct error *
open_node(void *context, const struct repository_node *what, struct objects **out)
{
    struct node_objects *at = memory_zeroed(sizeof *at);
    at->objects.ops = &node_ops;
    at->nodes = context;
    at->node = memory_string(what->node);
    at->name = memory_string(what->name);
    at->is_stopping = what->is_stopping;
    struct question q = {.at = at, .replaces = what->creates};
    struct error *error = try_once(&q, ask_open);
    if (error && may_pass(error))
        error = give_up(at, error);
    if (error)
        node_close(&at->objects);
    *out = error ? NULL : &at->objects;
    return error;
}

struct object_nodes *
object_nodes_new(struct cluster *cluster, struct runtime *runtime)
{
    struct object_nodes *nodes = memory_zeroed(sizeof *nodes);
    nodes->calls = (struct node_calls){.cluster = cluster_share(cluster), .runtime = runtime};
    nodes->places = (struct repository_nodes){open_node, nodes};
    return nodes;
}

void
object_nodes_free(struct object_nodes *nodes)
{
    if (!nodes)
        return;
    cluster_release(nodes->calls.cluster);
    free(nodes);
}

const struct repository_nodes *
object_nodes_places(const struct object_nodes *nodes)
{
    return &nodes->places;
}
