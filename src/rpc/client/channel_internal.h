/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a channel, for the files of rpc/ that make it up: channel*.c, connector.c, client_call.c, proxy.c, relay.c. */
#ifndef RPC_CLIENT_CHANNEL_INTERNAL_H
#define RPC_CLIENT_CHANNEL_INTERNAL_H

#include <stdatomic.h>

#include "rpc/client/channel.h"
#include "rpc/http2/address.h"
#include "rpc/http2/conn.h"
#include "rpc/http2/connector.h"
#include "rpc/runtime/metrics.h"

/* Something that wants a connection: a client's call or a proxied one. */
struct waiter {
    struct waiter *next;
    struct waiter **link; /* NULL: does not wait */
    struct channel *channel;
    bool wait_for_ready;
    void (*ready)(struct waiter *waiter, struct conn *conn);
    /* Takes the error. */
    void (*failed)(struct waiter *waiter, struct error *error);
};

enum channel_state { CHANNEL_IDLE, CHANNEL_CONNECTING, CHANNEL_READY, CHANNEL_PAUSING };

struct channel {
    atomic_uint
        references; /* the user's, one per connection, waiter's owner and attempt to connect */
    struct loop *loop;
    struct metrics *metrics;
    struct address address;
    struct tls_context *tls;
    char *tls_name;
    char *target;    /* as it was given, for messages */
    char *authority; /* what calls say in :authority */
    uint64_t connect_timeout_ns;
    uint64_t longest_pause_ns;
    uint64_t keepalive_ns;
    uint64_t keepalive_answer_ns;
    size_t max_message_bytes;
    enum channel_state state;
    bool is_closed;
    bool is_retired; /* closes when nothing uses it any more */
    struct task retirement;
    struct connector connector;
    struct conn *conn;  /* the one that new calls use; NULL unless ready */
    struct conn *young; /* the one that has been made last, to be watched; NULL once it is gone */
    struct conn *conns; /* all, with those that only finish what they have */
    struct waiter *waiters;
    struct waiter **last_waiter;
    uint64_t pause_ns;
    struct timer pause;
    struct timer watch; /* of the current connection */
    uint64_t pinged_at; /* 0: no answer is awaited */
    char *last_failure;
};

/* A server that knows the deadline cancels the stream when it passes, which may be a little earlier than here. */
static inline bool
channel_is_deadline(uint32_t http2_error, uint64_t deadline_at)
{
    const uint64_t a_little = 10000000;
    return http2_error == NGHTTP2_CANCEL && deadline_at && timers_now() + a_little >= deadline_at;
}

struct channel *channel_share(struct channel *channel);
/* Loop thread. */
void channel_release(struct channel *channel);

/* Loop thread: gives the waiter a connection, now or later, or fails it. */
void channel_want(struct channel *channel, struct waiter *waiter);
void channel_stop_waiting(struct waiter *waiter);

#endif
