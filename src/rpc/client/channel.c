/* SPDX-License-Identifier: Apache-2.0 */
/* Connection management of a channel: connecting, sharing, backoff, keepalive. See channel.h. */
#include "rpc/client/channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/client/channel_internal.h"
#include "rpc/runtime/runtime_internal.h"

#define SECOND_NS UINT64_C(1000000000)
#define INITIAL_BACKOFF_NS SECOND_NS
#define MAX_BACKOFF_NS (120 * SECOND_NS)
#define PING_TIMEOUT_NS (20 * SECOND_NS)

static void connect_now(struct channel *channel);

/* ---- references ---- */

struct channel *
channel_share(struct channel *channel)
{
    atomic_fetch_add_explicit(&channel->references, 1, memory_order_relaxed);
    return channel;
}

void
channel_release(struct channel *channel)
{
    if (atomic_fetch_sub_explicit(&channel->references, 1, memory_order_acq_rel) != 1)
        return;
    /* The analyzer ignores the reference count. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    loop_disarm(channel->loop, &channel->backoff);
    loop_disarm(channel->loop, &channel->watch);
    free(channel->tls_name);
    free(channel->target);
    free(channel->authority);
    free(channel->last_failure);
    free(channel);
}

/* ---- waiters ---- */

static void
add_waiter(struct channel *channel, struct waiter *waiter)
{
    waiter->next = NULL;
    waiter->link = channel->last_waiter;
    *channel->last_waiter = waiter;
    channel->last_waiter = &waiter->next;
    waiter->channel = channel;
}

static void
remove_waiter(struct waiter *waiter)
{
    *waiter->link = waiter->next;
    if (waiter->next)
        waiter->next->link = waiter->link;
    else
        waiter->channel->last_waiter = waiter->link;
    waiter->link = NULL;
}

static struct error *
failure(const struct channel *channel)
{
    return error_new(CODE_UNAVAILABLE, "connect to %s: %s", channel->target,
                     channel->last_failure ? channel->last_failure : "not connected");
}

static void
fail_waiters(struct channel *channel, bool all)
{
    struct waiter *waiter = channel->waiters;
    while (waiter) {
        struct waiter *next = waiter->next;
        if (all || !waiter->wait_for_ready) {
            remove_waiter(waiter);
            waiter->failed(waiter, failure(channel));
        }
        waiter = next;
    }
}

/* Sends no new calls to the connection; those in progress continue. */
static void
stop_using(struct channel *channel, struct conn *conn)
{
    if (channel->conn != conn)
        return;
    channel->conn = NULL;
    channel->state = CHANNEL_IDLE;
}

static void
stop_connecting(struct channel *channel)
{
    if (!channel->connector.attempt)
        return;
    connector_stop(&channel->connector);
    channel->state = CHANNEL_IDLE;
    channel_release(channel); /* the attempt's reference; the caller has one */
}

/* Ends a retired channel that has no waiters. Calls in progress continue. */
static void
end_if_retired(struct channel *channel)
{
    if (!channel->is_retired || channel->waiters)
        return;
    for (struct conn *conn = channel->conns; conn; conn = conn->next) {
        stop_using(channel, conn);
        if (!conn->stream_count)
            conn_kill(conn, "the channel is no longer used");
        else if (!conn->refuses_streams)
            conn_refuse_new_streams(conn);
    }
    stop_connecting(channel);
}

void
channel_stop_waiting(struct waiter *waiter)
{
    if (!waiter->link)
        return;
    remove_waiter(waiter);
    end_if_retired(waiter->channel);
}

/*
 * A connection has ids for about 2^30 streams. When they are used up, it finishes its calls, and a
 * new connection replaces it. The same goes for one that died in this loop turn.
 */
static void
replace_if_used_up(struct channel *channel)
{
    struct conn *conn = channel->conn;
    if (!conn || (!conn->is_dead && nghttp2_session_get_next_stream_id(conn->session) < INT32_MAX))
        return;
    stop_using(channel, conn);
    conn_refuse_new_streams(conn);
}

/*
 * If the connection has reached its stream limit, calls wait here. nghttp2's own queue does not
 * allow them to be withdrawn.
 */
static bool
may_begin(struct channel *channel)
{
    replace_if_used_up(channel);
    return channel->state == CHANNEL_READY && conn_can_open_stream(channel->conn);
}

static void
serve_waiters(struct channel *channel)
{
    while (channel->waiters && may_begin(channel)) {
        struct waiter *waiter = channel->waiters;
        remove_waiter(waiter);
        waiter->ready(waiter, channel->conn);
    }
    if (channel->waiters && channel->state == CHANNEL_IDLE && !channel->is_closed)
        connect_now(channel);
    end_if_retired(channel);
}

void
channel_request_conn(struct channel *channel, struct waiter *waiter)
{
    if (channel->is_closed) {
        waiter->failed(waiter, failure(channel));
        return;
    }
    if (!channel->waiters && may_begin(channel)) {
        waiter->ready(waiter, channel->conn);
        return;
    }
    if (channel->state == CHANNEL_BACKOFF && !waiter->wait_for_ready) {
        waiter->failed(waiter, failure(channel));
        return;
    }
    add_waiter(channel, waiter);
    if (channel->state == CHANNEL_IDLE)
        connect_now(channel);
}

/* ---- failure and backoff ---- */

static void
on_backoff_over(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, backoff);
    channel->state = CHANNEL_IDLE;
    if (channel->waiters)
        connect_now(channel);
}

/* Varies by +-20 %, so that many clients do not reconnect at the same time. */
static uint64_t
with_jitter(uint64_t time_ns)
{
    uint64_t spread = time_ns * 2 / 5;
    return time_ns - spread / 2 + (timers_now() / 1000 * UINT64_C(2654435761)) % (spread + 1);
}

static uint64_t
initial_backoff(const struct channel *channel)
{
    return channel->max_backoff_ns < INITIAL_BACKOFF_NS ? channel->max_backoff_ns
                                                        : INITIAL_BACKOFF_NS;
}

void
channel_end_backoff(struct channel *channel)
{
    if (channel->state != CHANNEL_BACKOFF)
        return;
    loop_disarm(channel->loop, &channel->backoff);
    channel->backoff_ns = initial_backoff(channel);
    on_backoff_over(&channel->backoff);
}

static void
back_off(struct channel *channel, const char *why)
{
    free(channel->last_failure);
    channel->last_failure = memory_string(why);
    log_debug(channel->loop->log, "cannot connect", LOG_TEXT("target", channel->target),
              LOG_TEXT("why", why));
    channel->state = CHANNEL_BACKOFF;
    loop_arm(channel->loop, &channel->backoff, timers_now() + with_jitter(channel->backoff_ns));
    channel->backoff_ns = channel->backoff_ns * 8 / 5;
    if (channel->backoff_ns > channel->max_backoff_ns)
        channel->backoff_ns = channel->max_backoff_ns;
    fail_waiters(channel, channel->is_closed);
}

/* ---- connections ---- */

static void
on_going_away(struct conn *conn, uint32_t http2_error, const char *text)
{
    struct channel *channel = conn->owner;
    if (http2_error == NGHTTP2_ENHANCE_YOUR_CALM && strcmp(text, "too_many_pings") == 0)
        channel->keepalive_ns *= 2;
    stop_using(channel, conn);
    serve_waiters(channel);
}

static void
on_stream_available(struct conn *conn)
{
    struct channel *channel = conn->owner;
    if (channel->waiters && channel->conn == conn)
        serve_waiters(channel);
}

static void
on_established(struct conn *conn)
{
    struct channel *channel = conn->owner;
    channel->conn = conn;
    channel->state = CHANNEL_READY;
    serve_waiters(channel);
}

static void
on_conn_closed(struct conn *conn, const char *why)
{
    struct channel *channel = conn->owner;
    *conn->link = conn->next;
    if (conn->next)
        conn->next->link = conn->link;
    channel->metrics->client_connections--;
    if (channel->newest == conn) {
        channel->newest = NULL;
        loop_disarm(channel->loop, &channel->watch);
    }
    stop_using(channel, conn);
    /*
     * If the peer never sent SETTINGS, connecting has failed; after any other loss, reconnect at
     * once.
     */
    bool is_the_attempt = channel->state == CHANNEL_IDLE ||
                          (channel->state == CHANNEL_CONNECTING && !channel->connector.attempt);
    if (!conn->received_settings && is_the_attempt)
        back_off(channel, why);
    else
        serve_waiters(channel);
    channel_release(channel);
}

static const struct conn_events client_conn_events = {
    .established = on_established,
    .stream_available = on_stream_available,
    .going_away = on_going_away,
    .closed = on_conn_closed,
};

/* Keepalive: pings a silent connection that has calls in progress. */
static void
watch_conn(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, watch);
    struct conn *conn = channel->newest;
    uint64_t now = timers_now();
    if (!conn->received_settings) {
        conn_kill(conn, "the server does not speak HTTP/2");
        return;
    }
    channel->backoff_ns = initial_backoff(channel);
    if (!channel->keepalive_ns)
        return;
    if (channel->pinged_at && conn->last_read_at < channel->pinged_at) {
        conn_reset(conn, "the server did not answer a keepalive ping");
        return;
    }
    channel->pinged_at = 0;
    uint64_t due = conn->last_read_at + channel->keepalive_ns;
    if (now >= due && conn->stream_count) {
        nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL);
        conn_mark_dirty(conn);
        channel->pinged_at = now;
        due = now + channel->keepalive_timeout_ns;
    }
    loop_arm(channel->loop, timer, due > now ? due : now + channel->keepalive_ns);
}

static void
add_conn(struct channel *channel, int fd)
{
    struct conn_options options = {
        .is_local = address_is_local(&channel->address),
        .max_header_bytes = RESPONSE_MAX_HEADER_BYTES,
        .counters = &channel->metrics->client_bytes,
    };
    struct tls_session *tls = channel->tls ? tls_session_new_client(channel->tls, channel->tls_name,
                                                                    channel->address.host)
                                           : NULL;
    struct conn *conn =
        conn_new(channel->loop, fd, tls, &options, &client_conn_events, channel_share(channel));
    conn->next = channel->conns;
    if (conn->next)
        conn->next->link = &conn->next;
    conn->link = &channel->conns;
    channel->conns = channel->newest = conn;
    loop_arm(channel->loop, &channel->watch, timers_now() + channel->connect_timeout_ns);
    channel->metrics->client_connections++;
    channel->metrics->client_connections_total++;
    conn_start(conn);
}

static void
on_connected(struct connector *connector, int fd, struct error *error)
{
    struct channel *channel = CONTAINER_OF(connector, struct channel, connector);
    if (error)
        back_off(channel, error->message);
    else
        add_conn(channel, fd);
    error_free(error);
    channel_release(channel);
}

static void
connect_now(struct channel *channel)
{
    channel->state = CHANNEL_CONNECTING;
    channel_share(channel);
    connector_start(&channel->connector, &channel->address, channel->connect_timeout_ns);
}

/* ---- open and close ---- */

static char *
make_authority(const struct address *address)
{
    char text[300];
    if (address_is_local(address))
        return memory_string("localhost");
    address_print(address, text, sizeof text);
    return memory_string(text);
}

struct error *
channel_open(struct runtime *runtime, const char *target, const struct channel_options *options,
             struct channel **out)
{
    struct address address;
    struct error *error = address_parse(target, &address);
    if (error)
        return error;
    struct channel *channel = memory_zeroed(sizeof *channel);
    atomic_init(&channel->references, 1);
    channel->loop = channel->connector.loop = runtime_loop(runtime);
    channel->metrics = runtime_metrics(runtime);
    channel->connector.done = on_connected;
    channel->address = address;
    channel->tls = options->tls;
    if (options->tls)
        channel->tls_name = memory_string(options->tls_name ? options->tls_name : address.host);
    channel->target = memory_string(target);
    channel->authority = make_authority(&address);
    channel->connect_timeout_ns =
        (options->connect_timeout_ms ? options->connect_timeout_ms : 10000) * UINT64_C(1000000);
    channel->keepalive_ns = options->keepalive_ms * UINT64_C(1000000);
    channel->keepalive_timeout_ns = options->keepalive_timeout_ms
                                        ? options->keepalive_timeout_ms * UINT64_C(1000000)
                                        : PING_TIMEOUT_NS;
    channel->max_message_bytes = options->max_message_bytes ? options->max_message_bytes : 4u << 20;
    channel->last_waiter = &channel->waiters;
    channel->max_backoff_ns =
        options->max_backoff_ms ? options->max_backoff_ms * UINT64_C(1000000) : MAX_BACKOFF_NS;
    channel->backoff_ns = initial_backoff(channel);
    channel->backoff.fire = on_backoff_over;
    channel->watch.fire = watch_conn;
    *out = channel;
    return NULL;
}

static void
stop(struct channel *channel, const char *why)
{
    channel->is_closed = true;
    loop_disarm(channel->loop, &channel->backoff);
    free(channel->last_failure);
    channel->last_failure = memory_string(why);
    fail_waiters(channel, true);
    for (struct conn *conn = channel->conns; conn; conn = conn->next)
        conn_kill(conn, "%s", why);
    stop_connecting(channel);
}

static void
stop_on_loop(void *argument)
{
    stop(argument, "this server is stopping");
}

void
channel_stop(struct channel *channel)
{
    loop_run(channel->loop, stop_on_loop, channel);
}

static void
close_on_loop(void *argument)
{
    struct channel *channel = argument;
    stop(channel, "the channel was closed");
    channel_release(channel); /* NOLINT(clang-analyzer-unix.Malloc) */
}

void
channel_close(struct channel *channel)
{
    if (channel)
        loop_run(channel->loop, close_on_loop, channel);
}

static void
retire_on_loop(struct task *task)
{
    struct channel *channel = CONTAINER_OF(task, struct channel, retirement);
    channel->is_retired = true;
    end_if_retired(channel);
    channel_release(channel);
}

void
channel_retire(struct channel *channel)
{
    if (!channel)
        return;
    channel->retirement.run = retire_on_loop;
    loop_post(channel->loop, &channel->retirement);
}
