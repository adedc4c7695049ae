/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of calls to a server, for client_call.c (loop thread), channel_call.c (a thread
 * that blocks) and relay.c (asynchronous: `finished` is called on the loop).
 *
 * LIFE. The creator and the loop each hold a reference. The loop needs the call until the HTTP/2
 * stream is closed, which may be after the creator has stopped waiting (deadline). Dropping the
 * last reference frees it. Until client_call_start the creator owns all fields. After that the loop
 * owns them until it closes the mailbox; from then on they are immutable.
 */
#ifndef RPC_CLIENT_CLIENT_CALL_INTERNAL_H
#define RPC_CLIENT_CLIENT_CALL_INTERNAL_H

#include <stdatomic.h>

#include "rpc/client/channel_internal.h"
#include "rpc/grpc/mailbox.h"
#include "rpc/grpc/response.h"
#include "rpc/http2/stream.h"

/*
 * What a served call passes on to the calls that its handler makes: deadline, cancellation and the
 * account that is charged. `children` belongs to the loop.
 */
struct parent_call {
    struct client_call *children;
    struct account *account;
    uint64_t deadline_at; /* 0: none */
    atomic_bool is_cancelled;
};

struct client_call {
    struct stream stream; /* must be first */
    struct waiter waiter;
    atomic_uint references;
    struct channel *channel; /* NULL once finished */
    const char *target;      /* the channel's target */
    struct loop *loop;
    struct account *account; /* the parent's, or the process's own */
    const struct method *method;
    struct metadata metadata; /* of the request */
    struct arena arena;       /* used by the loop once started: fields, replies */
    struct parent_call *parent;
    struct client_call *next_child;
    struct client_call **child_link;
    uint64_t deadline_at; /* 0: none */
    struct timer deadline;
    struct chunk *single_message; /* of a request with a single message; kept for retries */
    bool has_single_message;
    unsigned attempts;
    bool is_finished;
    bool has_reply; /* a message from the server has arrived */
    atomic_bool cancel_requested;
    size_t header_bytes;
    struct message_reader reader;
    size_t uncredited;
    struct mailbox mailbox;
    struct charge decoded; /* of a stream for a client: the message that was received last */
    struct response response;
    struct error *result; /* set when finished; NULL: OK */
    /* Called on the loop when the call has finished. NULL: a thread waits on the mailbox. */
    void (*finished)(struct client_call *call);
    void *owner; /* for use by `finished` */
    struct task start;
    struct task mailbox_task;
    struct task cancel;
};

/* Returns a call with two references: the creator's and the loop's. */
struct client_call *client_call_new(struct channel *channel, const struct method *method,
                                    const struct call_options *options);
void client_call_release(struct client_call *call);

/* Makes it a call with a single message. Takes over the chunk. Call before client_call_start. */
void client_call_set_message(struct client_call *call, struct chunk *message);

/* Decodes a message from the server into the arena and frees it. `charge`: see framing_unpack. */
MUST_CHECK struct error *client_call_unpack(const struct client_call *call, struct message *message,
                                            struct arena *arena, struct charge *charge,
                                            ProtobufCMessage **out);

/*
 * After the call has succeeded: decodes its single reply into the arena. INTERNAL if there is none,
 * or more than one.
 */
MUST_CHECK struct error *client_call_take_reply(struct client_call *call, struct arena *arena,
                                                struct charge *charge, void *reply);

/* ---- loop thread ---- */

void client_call_start(struct client_call *call);
/* Ends all calls made on behalf of `parent` with CANCELLED, or DEADLINE_EXCEEDED if that is why. */
void client_call_cancel_children(struct parent_call *parent);
/* No effect once the call has finished. */
void client_call_end_cancelled(struct client_call *call);
/* Returns window for the messages that were taken. */
void client_call_credit(struct client_call *call);

#endif
