/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a server's call, for the files of rpc/ that make it up: call*.c, proxy.c, server.c. */
#ifndef RPC_SERVER_CALL_INTERNAL_H
#define RPC_SERVER_CALL_INTERNAL_H

#include <stdatomic.h>

#include "rpc/client/client_call_internal.h"
#include "rpc/grpc/framing.h"
#include "rpc/grpc/mailbox.h"
#include "rpc/grpc/request.h"
#include "rpc/http2/conn.h"
#include "rpc/http2/stream.h"
#include "rpc/server/call.h"
#include "rpc/server/server_internal.h"

struct proxied;
struct relayed;

/* The handler that runs, and what it works on: call_delegate changes it for a while. */
struct scope {
    void *context;
    const struct method *method; /* NULL: a fallback, or none */
    const void *request;         /* NULL where the method's kind has none, as the reply is */
    void *reply;
};

/* What call_continue asked for. */
struct continuation {
    struct error *(*run)(struct call *call, const void *request, void *reply); /* NULL: nothing */
    struct scope scope;
};

struct call {
    struct stream stream;  /* first: the stream is the call */
    struct server *server; /* NULL: no client made the call */
    struct loop *loop;
    struct peer *peer;
    struct request_head head;
    struct kept_fields *fields;   /* what the head refers to */
    struct budget *budget;        /* that all of the call is charged to: see admission.h */
    size_t head_charged;          /* for the call and its head */
    struct server_method *target; /* NULL: a method that the server does not know */
    uint64_t started_at;
    struct parent_call parent; /* to the calls that its handler makes */
    struct timer deadline;

    /* Arenas: the first is the handler's while it runs, the second the loop's, for what goes on the wire. */
    struct arena arena;
    struct arena wire_arena;
    struct charge decoded; /* for what messages have become in the first */

    /* Where the call stands; loop thread. */
    bool holds_stream; /* the thread of a streaming handler is charged to its account */
    bool was_started;  /* it has a handler, or had one */
    bool is_running;   /* a handler has been started and has not come back */
    bool is_on_loop;   /* and it is the loop thread that runs it */
    bool is_answered;  /* the end of the answer is on its way, or will never be */
    bool head_sent;
    bool is_over;  /* the stream is gone */
    bool is_begun; /* the head is that of a call */
    bool is_counted;
    int http_status; /* to answer at the end of a request that is no gRPC; 0: it is */

    /* The request's body. */
    struct message_reader reader;
    struct message *request; /* of a method that takes one */
    int64_t body_bytes;
    size_t uncredited; /* bytes whose window has not been given back */
    struct chunk_queue
        raw; /* body of an unknown method, until somebody takes it; counted in the budget */

    /* Bytes of the answer that are counted in the budget: the handler's thread adds, the loop subtracts. */
    atomic_size_t out_charged;

    /* Streaming. */
    bool has_mailbox;
    struct arena message_arena; /* of the message that call_recv gave last */
    struct charge message_decoded;

    /* The handler's; the loop reads it once the handler is back. */
    struct scope scope;
    ProtobufCMessage *output; /* the answer's message; NULL where the method's kind has none */
    struct continuation go_on;
    void *kept;                       /* the handler's */
    struct relayed *relayed;          /* what rpc_relay asked for, and until it has ended */
    void (*leave)(struct call *call); /* not NULL: the call is parked */
    struct metadata reply_headers;
    struct metadata reply_trailers;
    bool sent_any;
    struct chunk *reply;
    struct error *result;
    uint64_t handler_ns; /* how long it ran, unless on the loop */
    struct channel *proxy_to;
    bool is_misdirected; /* the handler wanted a channel of another runtime's */

    struct turn turn;
    struct work work;
    struct task finished;
    struct task news;
    struct proxied *proxied;
    struct mailbox mailbox; /* last: only if has_mailbox is there anything in it */
};

/* ---- call.c ---- */
struct stream *call_open(struct conn *conn, int32_t id);
/* Frees the call if its stream is gone and no handler runs. */
void call_maybe_free(struct call *call);
/* Nobody waits for the answer any more. */
void call_cancel(struct call *call);
/* Answers a request that has been coming for longer than `limit_ns`, unless it may take its time. */
void call_end_if_late(struct stream *stream, uint64_t now, uint64_t limit_ns);
/* Gives back window for what has been taken. */
void call_credit(struct call *call);
/* Metrics and the log line, once. */
void call_count(struct call *call, enum code code, const char *message);
/* For who knows what time it is. */
void call_count_at(struct call *call, enum code code, const char *message, uint64_t now);

/* ---- call_reply.c: the loop's side of answering; each does nothing once the call is answered ---- */
void call_reply_http(struct call *call, int status);
/* Takes the error; NULL: OK. Sends what the mailbox and call->reply have before the status. */
void call_reply_status(struct call *call, struct error *taken);
/* Moves what the handler has sent to the stream. */
void call_reply_collect(struct call *call);

/* Counts bytes that are to be sent; RESOURCE_EXHAUSTED when too many wait already. The handler's thread or the loop. */
MUST_CHECK struct error *call_reply_charge(struct call *call, size_t size);
/* Loop thread: so many of them have been written. */
void call_reply_discharge(struct call *call, size_t size);

/* ---- call_run.c ---- */
void call_run(struct call *call);
/* The handler has come back, or what it left the call to: call->result is the answer, unless there is more to come. */
void call_finish(struct call *call);
/* Packs the output for the answer, if it is complete. */
MUST_CHECK struct error *call_pack_reply(struct call *call);
MUST_CHECK struct error *call_run_continuation(struct call *call);

/*
 * From a handler on the loop whose method streams its answer: the call stays open without a thread once the handler has returned NULL, until call_unpark. Or until nobody
 * waits for the answer any more: then `leave` is told, on the loop, and the call is no longer its owner's.
 */
void call_park(struct call *call, void (*leave)(struct call *call));
/* Sends a message of a call that is parked. Never waits. False: the client has not taken the last one yet, and this one is dropped. */
bool call_push(struct call *call, const ProtobufCMessage *message);
/* Nobody waits for the answer any more. Does nothing to a call that is not parked. */
void call_leave(struct call *call);
/* Takes the error, which is the answer's status. */
void call_unpark(struct call *call, struct error *status);

/* ---- call_detached.c: of a call that no client made ---- */
/* Does what the handler has left behind (call_continue, rpc_relay), and waits for it. Takes and gives the handler's error. */
MUST_CHECK struct error *call_detached_complete(struct call *call, const struct method *method,
                                                void *reply, struct error *error);
/* Loop thread: what was relayed has ended. */
void call_detached_wake(struct call *call);

/* ---- proxy.c ---- */
void proxy_begin(struct call *call, struct channel *channel);
void proxy_cancel(struct proxied *proxied);

/* ---- relay.c: of a call with `relayed`; loop thread ---- */
void relay_begin(struct call *call);
/* The handler has failed: nothing is relayed. */
void relay_drop(struct call *call);

#endif
