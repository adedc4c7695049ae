/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a server's call. The files that make it up, in the order in which a call passes
 * through them:
 *
 *     call_request.c   what the client sends: header, messages, end
 *     call_handler.c   unpacks the request, runs the handler, and goes on when it is back
 *     call_stream.c    what a streaming handler receives and sends
 *     call_reply.c     the answer: header, messages, status
 *     call_life.c      makes, cancels, counts and frees the call, for all of the above
 *
 * proxy/ passes a call on to another server, call_detached.c makes calls that no client made.
 */
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

/* How far the request and its handler have come. Loop thread only. */
enum call_state {
    CALL_NEW,     /* the header has not come, or is not that of a gRPC call */
    CALL_OPEN,    /* the header is accepted; no handler has been started */
    CALL_WAITING, /* the request is complete and waits to be unpacked for its handler */
    CALL_RUNNING, /* the handler has a thread or waits for one, or has parked or relayed the call */
    CALL_ON_LOOP, /* the handler runs on the loop, right now */
    CALL_RETURNED, /* the handler is back for good */
};

/* How far the answer has come. Loop thread only. */
enum answer_state {
    ANSWER_NONE,
    ANSWER_BEGUN, /* its header has been sent */
    ANSWER_ENDED, /* its status has been sent, or never will be */
    ANSWER_GONE,  /* the stream is gone */
};

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

/* What is to become of the call once its handler is back: rpc_proxy and rpc_relay set it. */
struct next_step {
    void (*begin)(struct call *call); /* NULL: it is answered */
    void (*drop)(struct call *call);  /* instead, if the handler has failed */
};

struct call {
    struct stream stream;  /* first: the stream is the call */
    struct server *server; /* NULL: no client made the call */
    struct loop *loop;
    struct peer *peer;
    struct request_header head;
    struct kept_fields *fields;   /* what the head refers to */
    struct budget *budget;        /* that all of the call is charged to: see admission.h */
    size_t head_charged;          /* for the call and its head */
    struct server_method *target; /* NULL: a method that the server does not know */
    uint64_t started_at;
    struct parent_call parent; /* to the calls that its handler makes */
    struct timer deadline;

    enum call_state state;
    enum answer_state answer;
    bool holds_stream; /* the thread of a streaming handler is charged to its account */
    int http_status;   /* to answer at the end of a request that is no gRPC; 0: it is */

    /* The first arena is the handler's while it runs, the second the loop's, for what goes on the wire. */
    struct arena arena;
    struct arena wire_arena;
    struct charge decoded; /* for what messages have become in the first */

    /* The request's body. */
    struct message_reader reader;
    struct message *request; /* of a method that takes one */
    int64_t body_bytes;
    size_t uncredited;      /* bytes whose window has not been given back */
    struct chunk_queue raw; /* of an unknown method, until somebody takes it; charged */

    /* Bytes of the answer that are charged: the handler's thread adds, the loop subtracts. */
    atomic_size_t out_charged;

    /* Streaming. */
    bool has_mailbox;
    struct arena message_arena; /* of the message that call_recv gave last */
    struct charge message_decoded;

    /* The handler's; the loop reads it once the handler is back. */
    struct scope scope;
    ProtobufCMessage *output; /* the answer's message; NULL where the method's kind has none */
    struct continuation go_on;
    struct next_step next;
    void *kept; /* the handler's */
    struct metadata reply_headers;
    struct metadata reply_trailers;
    bool sent_any;
    struct chunk *reply;
    struct error *result;
    uint64_t handler_ns; /* how long it ran, unless on the loop */

    /* Loop thread: tells whoever has the call now that nobody waits for the answer; NULL: nobody has. */
    void (*cancelled)(struct call *call);
    void (*leave)(struct call *call);          /* of a parked call: see call_park */
    void (*detached_ended)(struct call *call); /* of a call that no client made: see call_finish */
    struct relayed *relayed;                   /* what rpc_relay asked for, until it has ended */
    struct channel *proxy_to;                  /* what rpc_proxy asked for */
    struct proxied *proxied;

    struct turn turn;
    struct work work;
    struct task finished;
    struct task mailbox_task;
    struct mailbox mailbox; /* last: it is set up only if has_mailbox */
};

/* ---- call_request.c ---- */
struct stream *call_open(struct conn *conn, int32_t id);
/* Answers a request that has been coming for longer than `limit_ns`, unless it may take its time. */
void call_end_if_late(struct stream *stream, uint64_t now, uint64_t limit_ns);

/* ---- call_handler.c ---- */
/* The request is complete, or is a stream: starts the handler. */
void call_run(struct call *call);
/* The handler is back, or what it left the call to: answers with call->result unless there is more to do. */
void call_finish(struct call *call);
/* Packs the output for the answer, if it is complete. */
MUST_CHECK struct error *call_pack_reply(struct call *call);
MUST_CHECK struct error *call_run_continuation(struct call *call);
/* Decodes a message into the arena, and takes it. `charge` as in framing_unpack. Logs it. */
MUST_CHECK struct error *call_unpack(struct call *call, struct message *message,
                                     struct arena *arena, struct charge *charge,
                                     ProtobufCMessage **out);
/* At level debug, without secrets. */
void call_log_message(const struct call *call, const char *what, const ProtobufCMessage *message);
struct error *call_cancelled_error(void);

/* ---- call_stream.c ---- */
/*
 * From a handler on the loop whose method streams its answer: the call stays open without a thread
 * once the handler has returned NULL, until call_unpark. When nobody waits for the answer any more,
 * `leave` is told on the loop, and the call is no longer its owner's.
 */
void call_park(struct call *call, void (*leave)(struct call *call));
/* Sends a message of a parked call. Never waits. False: the client has not taken the last one yet, and
   this one is dropped. */
bool call_push(struct call *call, const ProtobufCMessage *message);
/* Takes the error, which is the answer's status. */
void call_unpark(struct call *call, struct error *status);

/* ---- call_reply.c: the loop's side of answering; each does nothing once the answer has ended ---- */
void call_reply_http(struct call *call, int status);
/* Takes the error; NULL: OK. Sends what the mailbox and call->reply have before the status. */
void call_reply_status(struct call *call, struct error *taken);
/* Moves what the handler has sent to the stream. */
void call_reply_collect(struct call *call);
/* Charges bytes that are to be sent; RESOURCE_EXHAUSTED when too many wait already. Any thread. */
MUST_CHECK struct error *call_reply_charge(struct call *call, size_t size);

/* ---- call_life.c ---- */
/* In the connection's loop; the caller sets stream.events. */
struct call *call_new(struct conn *conn);
void call_set_budget(struct call *call, struct budget *budget);
bool call_takes_stream(const struct call *call);
bool call_sends_stream(const struct call *call);
/* Either of the two. */
bool call_is_streaming(const struct call *call);
struct method_metrics *call_metrics(const struct call *call);
/* A handler owns its part of the call. */
bool call_is_running(const struct call *call);
/* Loop thread: so many bytes of the answer have been written. */
void call_discharge(struct call *call, size_t size);
/* Gives back window for what has been taken. */
void call_credit(struct call *call);
/* Nobody waits for the answer any more. */
void call_cancel(struct call *call);
/* From now on nothing is answered. False: that has been so before. */
bool call_end_answer(struct call *call);
/* Metrics and the log line. Once, when the answer ends. */
void call_count(struct call *call, enum code code, const char *message, uint64_t now);
/* Resets the stream of a request that breaks the rules of HTTP/2, and counts the call if it is one. */
void call_reset_malformed(struct call *call);
/* Frees the call if its stream is gone and no handler runs. */
void call_maybe_free(struct call *call);

/* ---- call_detached.c ---- */
/* Does what the handler has left behind (call_continue, rpc_relay), and waits for it. Takes and gives
   the handler's error. */
MUST_CHECK struct error *call_detached_complete(struct call *call, const struct method *method,
                                                void *reply, struct error *error);

#endif
