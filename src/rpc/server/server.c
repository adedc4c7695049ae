/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC server: services, connections, shutdown. Listening is in listener.c, calls in call_*.c. */
#include "rpc/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/memory.h"
#include "rpc/runtime/runtime_internal.h"
#include "rpc/server/call_internal.h"

#define WATCH_NS 500000000u
#define SECOND_GOAWAY_NS 1000000000u
/*
 * Connections of peers that have not introduced themselves by TLS and HTTP/2 do not count as
 * connections: anybody can open them, so they must not keep others out. Each listener has room of
 * its own for them, and if it is full, a new one takes the place of the oldest, which has had the
 * most time. What remains of the process's descriptors is for other work.
 */
#define CONNECTIONS_SHARE 4 /* of all descriptors, at most a quarter */
#define AWAITED_SHARE 16

#define REFUSAL_LOG_NS 1000000000u
/* With fewer closed connections, trimming the heap is not worth its cost. */
#define CONNS_PER_TRIM 32u

/* ---- services ---- */

struct add_service {
    struct server *server;
    const struct service *service;
    const void *handlers;
    void *context;
};

static void
add_service(void *argument)
{
    struct add_service *add = argument;
    struct server *server = add->server;
    methods_add_service(&server->methods, add->service, add->handlers, add->context,
                        server->metrics);
    server->services =
        memory_resize(server->services, (server->service_count + 2) * sizeof *server->services);
    server->services[server->service_count++] = add->service;
    server->services[server->service_count] = NULL;
}

void
server_add_service(struct server *server, const struct service *service, const void *handlers,
                   void *context)
{
    struct add_service add = {server, service, handlers, context};
    loop_run(server->loop, add_service, &add);
}

struct reserve {
    struct server *server;
    const char *path;
};

static void
reserve_on_loop(void *argument)
{
    const struct reserve *reserve = argument;
    struct server_method *method = methods_find(&reserve->server->methods, reserve->path);
    if (method)
        method->has_reserve = true;
}

void
server_reserve_for(struct server *server, const struct method *method)
{
    struct reserve reserve = {server, method->path};
    loop_run(server->loop, reserve_on_loop, &reserve);
}

void
server_set_fallback(struct server *server, const struct fallback *fallback)
{
    server->fallback = *fallback;
}

void
server_set_guard(struct server *server, const struct guard *guard)
{
    server->guard = *guard;
}

const struct service *const *
server_services(const struct server *server)
{
    return server->services;
}

/* ---- connections ---- */

/* At most one line per second: a peer that keeps retrying must not fill the log. */
static void
log_refusal(struct server *server, const struct conn *conn, const char *why)
{
    uint64_t now = timers_now();
    if (server->refusal_logged_at && now - server->refusal_logged_at < REFUSAL_LOG_NS) {
        server->unlogged_refusals++;
        return;
    }
    log_warn(server->loop->log, "a peer is refused", LOG_TEXT("peer", conn->peer->address),
             LOG_TEXT("why", why), LOG_NUMBER("suppressed", server->unlogged_refusals));
    server->refusal_logged_at = now;
    server->unlogged_refusals = 0;
}

static void
stop_awaiting(struct conn *conn)
{
    if (conn->awaited_by)
        STEAL(conn->awaited_by)->awaited--;
}

static void
make_room_for_awaited(struct server *server, struct listener *listener)
{
    struct conn *oldest = NULL;
    for (struct conn *conn = server->conns; conn; conn = conn->next)
        if (conn->awaited_by == listener)
            oldest = conn;
    if (!oldest)
        return;
    stop_awaiting(oldest);
    server->metrics->refused_connections_total++;
    log_refusal(server, oldest, "too many connections that say nothing");
    conn_kill(oldest, "the peer says nothing, and others have come");
}

static void
on_conn_introduced(struct conn *conn)
{
    struct server *server = conn->owner;
    stop_awaiting(conn);
    if (server->conn_count == server->options.max_connections) {
        server->metrics->refused_connections_total++;
        conn->refusal = "too many connections";
    } else {
        server->conn_count++;
    }
}

static void
on_conn_closed(struct conn *conn, const char *why)
{
    struct server *server = conn->owner;
    if (conn->tls_failed)
        log_refusal(server, conn, why);
    log_debug(server->loop->log, "connection closed", LOG_TEXT("peer", conn->peer->address),
              LOG_TEXT("why", why));
    *conn->link = conn->next;
    if (conn->next)
        conn->next->link = conn->link;
    if (conn->received_settings && !conn->refusal)
        server->conn_count--;
    stop_awaiting(conn);
    server->closed_conns++;
    server->metrics->server_connections--;
}

static const struct conn_events server_conn_events = {
    .introduced = on_conn_introduced,
    .open_stream = call_open,
    .closed = on_conn_closed,
};

static bool
is_slow(const struct server *server, const struct conn *conn, uint64_t now)
{
    uint64_t preface_ns = server->options.preface_timeout_ms * UINT64_C(1000000);
    uint64_t stall_ns = server->options.stall_timeout_ms * UINT64_C(1000000);
    return (!conn->received_settings && now - conn->opened_at > preface_ns) ||
           (conn->is_write_blocked && now - conn->write_blocked_since > stall_ns);
}

/*
 * Ends calls whose request does not arrive or whose client grants no window: each may block a
 * handler.
 */
static void
end_stalled_streams(const struct server *server, struct conn *conn, uint64_t now)
{
    uint64_t limit_ns = server->options.stream_stall_timeout_ms * UINT64_C(1000000);
    uint64_t request_ns = server->options.request_timeout_ms * UINT64_C(1000000);
    for (struct stream *stream = conn->streams; stream; stream = stream->next) {
        call_end_if_late(stream, now, request_ns);
        bool is_stalled = stream->out.size && !stream->has_progress;
        if (is_stalled && now - stream->stalled_since <= limit_ns)
            continue;
        if (is_stalled)
            stream_reset(stream, NGHTTP2_ENHANCE_YOUR_CALM);
        stream->has_progress = false;
        stream->stalled_since = now;
    }
}

/*
 * Returns the memory of closed connections to the system, if they are many or no connection is
 * left.
 */
static void
trim_memory(struct server *server)
{
    if (!server->closed_conns || (server->conns && server->closed_conns < CONNS_PER_TRIM))
        return;
    if (!server->conns)
        blocks_clear(&server->loop->blocks);
    if (loop_trim_heap(server->loop))
        server->closed_conns = 0;
}

/*
 * Closes connections that never send SETTINGS or do not read, and returns the memory of closed
 * ones.
 */
static void
watch_conns(struct timer *timer)
{
    struct server *server = CONTAINER_OF(timer, struct server, watch);
    uint64_t now = timers_now();
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        end_stalled_streams(server, conn, now);
        if (is_slow(server, conn, now))
            conn_kill(conn, "%s",
                      conn->received_settings ? "the peer does not read"
                                              : "the peer does not speak HTTP/2");
    }
    trim_memory(server);
    if (server->conns || server->closed_conns)
        loop_arm(server->loop, timer, now + WATCH_NS);
}

static void
accept_conn(struct listener *listener, int fd)
{
    struct server *server = listener->owner;
    struct conn_options options = {
        .is_server = true,
        .is_local = address_is_local(&listener->address),
        .max_streams = server->options.max_streams,
        .max_header_bytes = server->options.max_header_bytes,
        .counters = &server->metrics->server_bytes,
    };
    struct tls_session *tls = listener->tls ? tls_session_new_server(listener->tls) : NULL;
    struct conn *conn = conn_new(server->loop, fd, tls, &options, &server_conn_events, server);
    conn->next = server->conns;
    if (conn->next)
        conn->next->link = &conn->next;
    conn->link = &server->conns;
    server->conns = conn;
    server->metrics->server_connections++;
    server->metrics->server_connections_total++;
    conn->awaited_by = listener;
    if (++listener->awaited > server->options.max_awaited)
        make_room_for_awaited(server, listener);
    if (!timer_is_armed(&server->watch))
        loop_arm(server->loop, &server->watch, timers_now() + WATCH_NS);
    conn_start(conn);
}

/* ---- create and listen ---- */

static uint32_t
or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

static uint32_t
at_most(uint32_t value, size_t limit)
{
    return value <= limit ? value : limit ? (uint32_t)limit : 1;
}

static void
init_on_loop(void *argument)
{
    struct server *server = argument;
    server->unknown_metrics = metrics_method(server->metrics, "other");
}

struct server *
server_new(struct runtime *runtime, const struct server_options *options)
{
    struct server *server = memory_zeroed(sizeof *server);
    struct server_options *o = &server->options;
    *o = *options;
    o->max_message_bytes = o->max_message_bytes ? o->max_message_bytes : 4u << 20;
    o->max_header_bytes = or_default(o->max_header_bytes, 16u << 10);
    o->max_streams = or_default(o->max_streams, 256);
    o->max_connections = at_most(or_default(o->max_connections, ADMISSION_CONNECTIONS),
                                 descriptors_limit() / CONNECTIONS_SHARE);
    o->max_awaited = at_most(or_default(o->max_awaited, 512), descriptors_limit() / AWAITED_SHARE);
    o->preface_timeout_ms = or_default(o->preface_timeout_ms, 10000);
    o->stall_timeout_ms = or_default(o->stall_timeout_ms, 60000);
    o->stream_stall_timeout_ms = or_default(o->stream_stall_timeout_ms, 300000);
    o->request_timeout_ms = or_default(o->request_timeout_ms, 30000);
    server->loop = runtime_loop(runtime);
    server->metrics = runtime_metrics(runtime);
    server->watch.fire = watch_conns;
    drain_init(&server->drain);
    methods_init(&server->methods);
    server->services = memory_zeroed(sizeof *server->services);
    loop_run(server->loop, init_on_loop, server);
    return server;
}

struct start_listeners {
    struct server *server;
    struct listener *first;
};

static void
start_listeners(void *argument)
{
    struct start_listeners *start = argument;
    struct listener **place = &start->server->listeners;
    while (*place)
        place = &(*place)->next;
    *place = start->first;
    for (struct listener *listener = start->first; listener; listener = listener->next) {
        listener_init(listener);
        if (!start->server->options.accept_later)
            listener_start(listener);
    }
}

static struct error *
open_listeners(struct server *server, const struct address *address,
               const struct listen_options *options, struct listener **out)
{
    struct listener like = {
        .loop = server->loop, .tls = options->tls, .accepted = accept_conn, .owner = server};
    return listeners_open(address, options->socket_mode ? options->socket_mode : 0600, &like, out);
}

struct error *
server_listen(struct server *server, const char *text, const struct listen_options *options)
{
    static const struct listen_options defaults;
    struct address address;
    struct listener *first;
    struct error *error = address_parse(text, &address);
    if (!error)
        error = open_listeners(server, &address, options ? options : &defaults, &first);
    if (error)
        return error;
    struct start_listeners start = {server, first};
    loop_run(server->loop, start_listeners, &start);
    return NULL;
}

static void
begin(void *argument)
{
    struct server *server = argument;
    server->options.accept_later = false;
    for (struct listener *listener = server->listeners; listener; listener = listener->next)
        listener_start(listener);
}

void
server_begin(struct server *server)
{
    loop_run(server->loop, begin, server);
}

const struct address *
server_address(const struct server *server, size_t n)
{
    const struct listener *listener = server->listeners;
    while (listener && n--)
        listener = listener->next;
    return listener ? &listener->address : NULL;
}

/* ---- shutdown ---- */

static void
refuse_streams(struct timer *timer)
{
    struct server *server = CONTAINER_OF(timer, struct server, second_goaway);
    for (struct conn *conn = server->conns; conn; conn = conn->next)
        conn_refuse_new_streams(conn);
}

static void
begin_drain(void *argument)
{
    struct server *server = argument;
    if (server->drain.is_started)
        return;
    for (struct listener *listener = server->listeners; listener; listener = listener->next)
        listener_stop(listener);
    for (struct conn *conn = server->conns; conn; conn = conn->next)
        conn_announce_shutdown(conn);
    server->second_goaway.fire = refuse_streams;
    if (server->drain.calls)
        loop_arm(server->loop, &server->second_goaway, timers_now() + SECOND_GOAWAY_NS);
    else
        refuse_streams(&server->second_goaway);
    drain_start(&server->drain);
}

static void
kill_conns(void *argument)
{
    struct server *server = argument;
    loop_disarm(server->loop, &server->second_goaway);
    refuse_streams(&server->second_goaway);
    for (struct conn *conn = server->conns; conn; conn = conn->next)
        conn_kill(conn, "the server is shutting down");
}

bool
server_stop(struct server *server, uint32_t timeout_ms)
{
    loop_run(server->loop, begin_drain, server);
    return drain_wait(&server->drain, timeout_ms * UINT64_C(1000000));
}

void
server_drain(struct server *server, uint32_t grace_ms)
{
    if (!server_stop(server, grace_ms))
        loop_run(server->loop, kill_conns, server);
}

static void
nothing(void *argument)
{
    (void)argument;
}

static void
clear_on_loop(void *argument)
{
    struct server *server = argument;
    loop_disarm(server->loop, &server->watch);
    loop_disarm(server->loop, &server->second_goaway);
    while (server->listeners) {
        struct listener *next = server->listeners->next;
        listener_free(server->listeners);
        server->listeners = next;
    }
}

void
server_free(struct server *server)
{
    if (!server)
        return;
    loop_run(server->loop, begin_drain, server);
    loop_run(server->loop, kill_conns, server);
    /* Handlers are never interrupted: a mount or a copy in progress is waited for. */
    drain_wait(&server->drain, UINT64_MAX);
    /* The killed connections are destroyed between this task and the next. */
    loop_run(server->loop, nothing, NULL);
    loop_run(server->loop, clear_on_loop, server);
    drain_clear(&server->drain);
    free(server->services);
    methods_clear(&server->methods);
    free(server);
}
