/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a call to a server, for client_call.c (the loop's side), channel_call.c (a thread that waits) and relay.c (nobody waits: the
 * end is told on the loop).
 *
 * LIFE. Two hold a call: who made it and the loop, which needs it until the HTTP/2 stream is gone, maybe longer than its maker
 * waits (a deadline that passes). Who lets go last frees it. Until client_call_start its maker owns all fields; then the loop
 * does, until it closes the mailbox; from there on they do not change.
 */
#ifndef RPC_CLIENT_CLIENT_CALL_INTERNAL_H
#define RPC_CLIENT_CLIENT_CALL_INTERNAL_H

#include <stdatomic.h>

#include "rpc/client/channel_internal.h"
#include "rpc/grpc/mailbox.h"
#include "rpc/grpc/response.h"
#include "rpc/http2/stream.h"

/*
 * What a call that is being served hands down to the calls that its handler makes: deadline,
 * cancellation and the account that pays. `children` belongs to the loop.
 */
struct parent_call {
    struct client_call *children;
    struct account *account;
    uint64_t deadline_at; /* 0: none */
    atomic_bool is_cancelled;
};

struct client_call {
    struct stream stream; /* first */
    struct waiter waiter;
    atomic_uint references;
    struct channel *channel; /* NULL once finished */
    const char *target;      /* the channel's */
    struct loop *loop;
    struct account *account; /* the parent's client's, or the process's own */
    const struct method *method;
    struct metadata metadata; /* of the request */
    struct arena arena;       /* the loop's, once started: fields, answers */
    struct parent_call *parent;
    struct client_call *next_child;
    struct client_call **child_link;
    uint64_t deadline_at; /* 0: none */
    struct timer deadline;
    struct chunk *only_message; /* of a request with one message: kept for another attempt */
    bool has_only_message;
    unsigned attempts;
    bool is_finished;
    bool has_reply; /* a message of the server's has come */
    atomic_bool cancel_asked;
    size_t header_bytes;
    struct message_reader reader;
    size_t uncredited;
    struct mailbox mailbox;
    struct response response;
    struct error *result; /* once finished; NULL: OK */
    /* On the loop, when the call has finished; NULL: a thread waits in the mailbox. */
    void (*finished)(struct client_call *call);
    void *owner; /* for `finished` */
    struct task start;
    struct task news;
    struct task cancel;
};

/* With two references, the maker's and the loop's. */
struct client_call *client_call_new(struct channel *channel, const struct method *method,
                                    const struct call_options *options);
void client_call_release(struct client_call *call);

/* Makes it a call with one message, which is taken. Before it starts. */
void client_call_set_message(struct client_call *call, struct chunk *message);

/* Decodes a message of the server's into the arena, and takes it. `charge` as in framing_unpack. */
MUST_CHECK struct error *client_call_unpack(const struct client_call *call, struct message *message,
                                            struct arena *arena, struct charge *charge,
                                            ProtobufCMessage **out);

/* Once the call has finished well: the one message of the answer, in the arena. INTERNAL if there is none. */
MUST_CHECK struct error *client_call_take_reply(struct client_call *call, struct arena *arena,
                                                struct charge *charge, void *reply);

/* ---- loop thread ---- */

void client_call_start(struct client_call *call);
/* The calls that are made on behalf of `parent` end with CANCELLED (or DEADLINE_EXCEEDED, when it is that). */
void client_call_cancel_children(struct parent_call *parent);
/* Does nothing once the call has finished. */
void client_call_end_cancelled(struct client_call *call);
/* Gives back window for what has been taken. */
void client_call_credit(struct client_call *call);

#endif
