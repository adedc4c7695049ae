/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling a gRPC server. A channel is one address; it connects when the first call needs it, shares the connection among all
 * calls, and connects again, with growing pauses, when it is lost. Calls block their thread: they are for workers and the command line,
 * never for the loop thread.
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
struct client_call;
struct parent_call;

/* Zero means the default that stands beside it. */
struct channel_options {
    struct tls_context *tls;     /* NULL: plaintext. Must outlive the channel. */
    const char *tls_name;        /* the name that the server must prove; NULL: the target's host */
    uint32_t connect_timeout_ms; /* 10 s */
    uint32_t longest_pause_ms;   /* 120 s: between attempts to connect, the first pause being 1 s */
    uint32_t keepalive_ms;       /* never: ask a silent server whether it lives, while calls wait */
    uint32_t keepalive_answer_ms; /* 20 s: how long it has to answer */
    size_t max_message_bytes;     /* 4 MiB */
};

/* Only the form of the target can be wrong now; whether somebody is there, the first call tells. */
MUST_CHECK struct error *channel_open(struct runtime *runtime, const char *target,
                                      const struct channel_options *options, struct channel **out);

/* Calls that still run end with UNAVAILABLE. */
void channel_close(struct channel *channel);

/*
 * The caller will make no more calls on it: it closes when those that it has, also those that wait for a connection, have ended by themselves. Any thread, also the
 * loop's; does not wait. NULL is fine.
 */
void channel_retire(struct channel *channel);

/* The server was heard of by other means: if attempts to connect pause, the next call does not wait for the end of the pause. Loop thread. */
void channel_end_pause(struct channel *channel);

/* Zero everywhere is a plain call. */
struct call_options {
    uint64_t timeout_ns;             /* 0: no deadline but the parent's */
    const struct metadata *metadata; /* sent with the call */
    /* The call on whose behalf this one is made (call_as_parent); NULL: none. Its deadline and its
       cancellation hold for this one too. */
    struct parent_call *parent;
    bool wait_for_ready; /* wait for the server to come up instead of failing at once */
};

/* One request, one reply. The reply (*reply, of the method's output type) lives in the arena. */
MUST_CHECK struct error *channel_call(struct channel *channel, const struct method *method,
                                      const ProtobufCMessage *request,
                                      const struct call_options *options, struct arena *arena,
                                      void *reply);

/* ---- streams, of any kind ---- */

MUST_CHECK struct error *client_call_open(struct channel *channel, const struct method *method,
                                          const struct call_options *options,
                                          struct client_call **out);

/* Waits while the server does not take what was sent before. CANCELLED when the call has ended: client_call_finish tells how. */
MUST_CHECK struct error *client_call_send(struct client_call *call,
                                          const ProtobufCMessage *message);

/* No more messages from this side. */
void client_call_close_send(struct client_call *call);

/* The server's next message in *message, in the arena; NULL when there are no more: then client_call_finish tells the status. */
MUST_CHECK struct error *client_call_recv(struct client_call *call, struct arena *arena,
                                          void *message);

/* Any thread, at any time before client_call_free. */
void client_call_cancel(struct client_call *call);

/* Waits for the end; the status as an error. Messages that nobody received are dropped. */
MUST_CHECK struct error *client_call_finish(struct client_call *call);

/* What the server sent, once client_call_recv has given a message or the call has finished. */
const struct metadata *client_call_headers(const struct client_call *call);
/* Once the call has finished. */
const struct metadata *client_call_trailers(const struct client_call *call);

void client_call_free(struct client_call *call);

#endif
