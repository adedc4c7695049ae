/* SPDX-License-Identifier: Apache-2.0 */
/* Implementation of channels, for channel*.c, client_call.c, proxy.c and relay.c only. */
#ifndef RPC_CLIENT_CHANNEL_INTERNAL_H
#define RPC_CLIENT_CHANNEL_INTERNAL_H

#include <stdatomic.h>

#include "rpc/client/channel.h"
#include "rpc/http2/address.h"
#include "rpc/http2/conn.h"
#include "rpc/http2/connector.h"
#include "rpc/runtime/metrics.h"

/* Limit for the headers and trailers of one response. */
#define RESPONSE_MAX_HEADER_BYTES (64u << 10)

/* A client's call or proxied call that needs a connection. */
struct waiter {
    struct waiter *next;
    struct waiter **link; /* NULL: not waiting */
    struct channel *channel;
    bool wait_for_ready;
    void (*ready)(struct waiter *waiter, struct conn *conn);
    /* Takes over the error. */
    void (*failed)(struct waiter *waiter, struct error *error);
};

enum channel_state { CHANNEL_IDLE, CHANNEL_CONNECTING, CHANNEL_READY, CHANNEL_BACKOFF };

struct channel {
    /* held by the user, each connection, each waiter's owner, the connection attempt */
    atomic_uint references;
    struct loop *loop;
    struct metrics *metrics;
    struct address address;
    struct tls_context *tls;
    char *tls_name;
    char *target;    /* as given, for messages */
    char *authority; /* value of :authority */
    uint64_t connect_timeout_ns;
    uint64_t max_backoff_ns;
    uint64_t keepalive_ns;
    uint64_t keepalive_timeout_ns;
    size_t max_message_bytes;
    enum channel_state state;
    bool is_closed;
    bool is_retired; /* closes once it has no calls and no waiters */
    struct task retirement;
    struct connector connector;
    struct conn *conn;   /* used for new calls; NULL unless CHANNEL_READY */
    struct conn *newest; /* the latest connection, watched by `watch`; NULL once closed */
    struct conn *conns;  /* all, including those that only finish their calls */
    struct waiter *waiters;
    struct waiter **last_waiter;
    uint64_t backoff_ns;
    struct timer backoff;
    struct timer watch; /* of the newest connection */
    uint64_t pinged_at; /* 0: no ping is outstanding */
    char *last_failure;
};

/* A server that knows the deadline may cancel the stream slightly before it passes here. */
static inline bool
channel_is_deadline(uint32_t http2_error, uint64_t deadline_at)
{
    const uint64_t tolerance_ns = 10000000;
    return http2_error == NGHTTP2_CANCEL && deadline_at &&
           timers_now() + tolerance_ns >= deadline_at;
}

struct channel *channel_share(struct channel *channel);
/* Loop thread. */
void channel_release(struct channel *channel);

/* Loop thread. Calls the waiter's `ready` or `failed`, now or later. */
void channel_request_conn(struct channel *channel, struct waiter *waiter);
void channel_stop_waiting(struct waiter *waiter);

#endif
