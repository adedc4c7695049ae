/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of server calls. A call passes through these files in this order:
 *
 *     call_request.c   receives the request: header, messages, end
 *     call_handler.c   unpacks the request, runs the handler, continues when it returns
 *     call_stream.c    messages that a streaming handler receives and sends
 *     call_reply.c     sends the answer: header, messages, status
 *     call_life.c      creates, cancels, counts and frees calls, for all of the above
 *
 * proxy/ forwards calls to another server; call_detached.c makes calls without a client.
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

/* Progress of the request and its handler. Loop thread only. */
enum call_state {
    CALL_NEW,      /* the header is incomplete, or not that of a gRPC call */
    CALL_OPEN,     /* the header is accepted; no handler has been started */
    CALL_WAITING,  /* the request is complete and waits to be unpacked */
    CALL_RUNNING,  /* the handler runs or waits for a thread, or has parked or relayed the call */
    CALL_ON_LOOP,  /* the handler is running on the loop */
    CALL_RETURNED, /* the handler has returned for good */
};

/* Progress of the answer. Loop thread only. */
enum answer_state {
    ANSWER_NONE,
    ANSWER_BEGUN, /* its header has been sent */
    ANSWER_ENDED, /* its status has been sent, or never will be */
    ANSWER_GONE,  /* the stream is closed */
};

/* The running handler and its arguments; call_delegate replaces it temporarily. */
struct scope {
    void *context;
    const struct method *method; /* NULL: a fallback, or none */
    const void *request;         /* NULL if the method's kind has none; same for `reply` */
    void *reply;
};

/* Set by call_continue. */
struct continuation {
    struct error *(*run)(struct call *call, const void *request, void *reply); /* NULL: none */
    struct scope scope;
};

/* What happens after the handler has returned; set by rpc_proxy and rpc_relay. */
struct next_step {
    void (*begin)(struct call *call); /* NULL: the call is answered */
    void (*drop)(struct call *call);  /* called instead if the handler failed */
};

struct call {
    struct stream stream;  /* must be first */
    struct server *server; /* NULL: a detached call */
    struct loop *loop;
    struct peer *peer;
    struct request_header header;
    struct kept_fields *fields;   /* the text that `header` points to */
    struct budget *budget;        /* charged for all memory of the call: see admission.h */
    size_t header_charged;        /* for the call and its header */
    struct server_method *target; /* NULL: unknown to the server */
    uint64_t started_at;
    struct parent_call parent; /* of the calls that its handler makes */
    struct timer deadline;

    enum call_state state;
    enum answer_state answer;
    bool has_stream_slot; /* it holds one of its account's slots for streaming handlers */
    int http_status;      /* answer to a request that is not gRPC, sent at its end; 0: gRPC */

    /* `arena` is the handler's while it runs; `wire_arena` is the loop's, for outgoing fields. */
    struct arena arena;
    struct arena wire_arena;
    struct charge decoded; /* for the decoded messages in `arena` */

    /* Request body. */
    struct message_reader reader;
    struct message *request; /* if the method takes a single message */
    int64_t body_bytes;
    size_t uncredited;           /* received bytes not returned to the window */
    struct chunk_queue raw_body; /* undecoded body of an unknown method; charged */

    /* Charged bytes of the answer: the handler's thread adds, the loop subtracts. */
    atomic_size_t out_charged;

    /* Streaming. */
    bool has_mailbox;
    struct arena message_arena; /* of the last message that call_recv returned */
    struct charge message_decoded;

    /* Owned by the handler; the loop reads it after the handler has returned. */
    struct scope scope;
    ProtobufCMessage *output; /* the answer's message; NULL if the method's kind has none */
    struct continuation continuation;
    struct next_step next;
    void *data; /* set by call_set_data */
    void (*release_data)(void *data);
    struct metadata reply_headers;
    struct metadata reply_trailers;
    bool sent_any;
    struct chunk *reply;
    struct error *result;
    uint64_t handler_ns; /* run time on a worker */

    /* Loop thread: called when nobody waits for the answer any more; NULL: nobody to notify. */
    void (*cancelled)(struct call *call);
    void (*park_cancelled)(struct call *call); /* of a parked call: see call_park */
    void (*detached_ended)(struct call *call); /* of a detached call: see call_finish */
    struct relayed *relayed;                   /* set by rpc_relay until it has ended */
    struct channel *proxy_to;                  /* set by rpc_proxy */
    struct proxied *proxied;

    struct turn turn;
    struct work work;
    struct task finished;
    struct task mailbox_task;
    struct mailbox mailbox; /* must be last: initialized only if has_mailbox */
};

/* ---- call_request.c ---- */
struct stream *call_open(struct conn *conn, int32_t id);
/* Ends a call whose request is incomplete after `limit_ns`, unless it may stream. */
void call_end_if_late(struct stream *stream, uint64_t now, uint64_t limit_ns);

/* ---- call_handler.c ---- */
/* Starts the handler: the request is complete, or is a stream. */
void call_run(struct call *call);
/*
 * Call when the handler, or what it passed the call to, is done. Answers with call->result unless
 * the call continues.
 */
void call_finish(struct call *call);
/* Packs the output, unless the call continues. */
MUST_CHECK struct error *call_pack_reply(struct call *call);
MUST_CHECK struct error *call_run_continuation(struct call *call);
/*
 * Decodes and logs a message, and frees it. The result lives in the arena. `charge`: see
 * framing_unpack.
 */
MUST_CHECK struct error *call_unpack(struct call *call, struct message *message,
                                     struct arena *arena, struct charge *charge,
                                     ProtobufCMessage **out);
/* At debug level, without secrets. */
void call_log_message(const struct call *call, const char *what, const ProtobufCMessage *message);
struct error *call_cancelled_error(void);

/* ---- call_stream.c ---- */
/*
 * For a handler on the loop whose method streams its answer: after the handler has returned NULL,
 * the call stays open without a thread until call_unpark. If nobody waits for the answer any more,
 * `cancelled` is called on the loop; after that the handler must not use the call.
 */
void call_park(struct call *call, void (*cancelled)(struct call *call));
/*
 * Sends a message of a parked call. Never blocks. Returns false and drops the message if the client
 * has not read the previous one yet.
 */
bool call_push(struct call *call, const ProtobufCMessage *message);
/* Ends a parked call with this status. Takes over the error. */
void call_unpark(struct call *call, struct error *status);

/* ---- call_reply.c: loop thread; no effect once the answer has ended ---- */
void call_reply_http(struct call *call, int status);
/*
 * Sends the messages in the mailbox and call->reply, then the status. Takes over the error; NULL:
 * OK.
 */
void call_reply_status(struct call *call, struct error *taken);
/* Moves the messages that the handler has sent to the stream. */
void call_reply_collect(struct call *call);
/* Charges bytes to be sent. RESOURCE_EXHAUSTED: too many are waiting. Any thread. */
MUST_CHECK struct error *call_reply_charge(struct call *call, size_t size);

/* ---- call_life.c ---- */
/* The caller sets stream.events. */
struct call *call_new(struct conn *conn);
void call_set_budget(struct call *call, struct budget *budget);
bool call_takes_stream(const struct call *call);
bool call_sends_stream(const struct call *call);
/* Either of the two. */
bool call_is_streaming(const struct call *call);
struct method_metrics *call_metrics(const struct call *call);
/* Does a handler own its part of the call? */
bool call_is_running(const struct call *call);
/* Loop thread. `size` bytes of the answer were written. */
void call_discharge(struct call *call, size_t size);
/* Returns window for the messages that were taken. */
void call_credit(struct call *call);
/* Call when nobody waits for the answer any more. */
void call_cancel(struct call *call);
/* Marks the answer as ended. Returns false if it had ended before. */
bool call_end_answer(struct call *call);
/* Updates metrics and logs the call. Once, when the answer ends. */
void call_count(struct call *call, enum code code, const char *message, uint64_t now);
/* Resets the stream of a request that violates HTTP/2, and counts the call if it is one. */
void call_reset_malformed(struct call *call);
/* Frees the call if its stream is closed and no handler runs. */
void call_maybe_free(struct call *call);

/* ---- call_detached.c ---- */
/*
 * Runs continuations and relays that the handler started, and waits for them. Takes over the
 * handler's error and returns the final one.
 */
MUST_CHECK struct error *call_detached_complete(struct call *call, const struct method *method,
                                                void *reply, struct error *error);

#endif
