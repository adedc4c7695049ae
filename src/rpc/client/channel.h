/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client side of gRPC. A channel stands for one address. It connects when the first call needs it,
 * shares the connection among all calls, and reconnects with exponential backoff. Calls block their
 * thread: use them from workers and the command line, never from the loop thread.
 */
#ifndef RPC_CLIENT_CHANNEL_H
#define RPC_CLIENT_CHANNEL_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "message/service.h"
#include "rpc/grpc/metadata.h"
#include "rpc/runtime/runtime.h"
#include "rpc/tls/tls.h"

struct channel;
struct charge;
struct client_call;
struct parent_call;

/* 0 selects the default given in the comment. */
struct channel_options {
    struct tls_context *tls; /* NULL: plaintext; must outlive the channel */
    /* name that the server's certificate must have; NULL: the target's host */
    const char *tls_name;
    uint32_t connect_timeout_ms; /* 10 s */
    uint32_t max_backoff_ms;     /* 120 s; limit of the reconnect backoff, which starts at 1 s */
    /* never; ping a silent server after this time while calls are in progress */
    uint32_t keepalive_ms;
    uint32_t keepalive_timeout_ms; /* 20 s; limit for the ping's ack */
    size_t max_message_bytes;      /* 4 MiB */
};

/* Checks only the syntax of the target; the first call connects. */
MUST_CHECK struct error *channel_open(struct runtime *runtime, const char *target,
                                      const struct channel_options *options, struct channel **out);

/* Calls in progress end with UNAVAILABLE. */
void channel_close(struct channel *channel);

/*
 * Because the process stops: all calls end with UNAVAILABLE, those in progress and those to come.
 * The channel is still to be closed or retired. Any thread but the loop's.
 */
void channel_stop(struct channel *channel);

/*
 * Closes the channel once its calls have ended, including those that still wait for a connection.
 * The caller must not start new ones. Any thread, including the loop thread; does not block. NULL
 * is ignored.
 */
void channel_retire(struct channel *channel);

/* Ends the reconnect backoff early, because the server is known to be up. Loop thread. */
void channel_end_backoff(struct channel *channel);

/* All zero: a plain call. */
struct call_options {
    uint64_t timeout_ns;             /* 0: only the parent's deadline applies */
    const struct metadata *metadata; /* sent with the call */
    /*
     * The call on whose behalf this one is made (call_as_parent), or NULL. Its deadline and
     * cancellation apply to this call too.
     */
    struct parent_call *parent;
    /* Unary: of the arena that gets the reply (call_make_room); NULL: it is not charged. */
    struct charge *charge;
    bool wait_for_ready; /* wait until the server is reachable instead of failing at once */
};

/* A unary call. The reply (*reply, of the method's output type) lives in the arena. */
MUST_CHECK struct error *channel_call(struct channel *channel, const struct method *method,
                                      const ProtobufCMessage *request,
                                      const struct call_options *options, struct arena *arena,
                                      void *reply);

/* ---- streaming calls ---- */

MUST_CHECK struct error *client_call_open(struct channel *channel, const struct method *method,
                                          const struct call_options *options,
                                          struct client_call **out);

/*
 * Blocks while flow control holds back earlier messages. CANCELLED if the call has ended;
 * client_call_finish returns its status.
 */
MUST_CHECK struct error *client_call_send(struct client_call *call,
                                          const ProtobufCMessage *message);

/* Half-closes the call: no more messages from this side. */
void client_call_close_send(struct client_call *call);

/*
 * Sets *message to the server's next message, in the arena, or to NULL if there are no more. Then
 * client_call_finish returns the status.
 */
MUST_CHECK struct error *client_call_recv(struct client_call *call, struct arena *arena,
                                          void *message);

/* Any thread, any time before client_call_free. */
void client_call_cancel(struct client_call *call);

/* Waits for the end and returns the status. Drops messages that were not received. */
MUST_CHECK struct error *client_call_finish(struct client_call *call);

/* Valid once client_call_recv has returned a message or the call has finished. */
const struct metadata *client_call_headers(const struct client_call *call);
/* Valid once the call has finished. */
const struct metadata *client_call_trailers(const struct client_call *call);

void client_call_free(struct client_call *call);

#endif
