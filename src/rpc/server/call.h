/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call as its handler sees it. A handler is a plain function that may block; it runs on a thread that is its own while it
 * runs (or on the loop where its service says so, and then must not block). What it allocates for the call comes from the call's arena.
 *
 * All functions here are for the handler's own thread, while the handler runs, unless they say otherwise.
 */
#ifndef RPC_SERVER_CALL_H
#define RPC_SERVER_CALL_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "rpc/grpc/metadata.h"
#include "rpc/http2/peer.h"

struct call;
struct channel;
struct method;
struct parent_call;
struct runtime;

/* What was given beside the handlers: to server_add_service, or to call_delegate. */
void *call_context(const struct call *call);

struct arena *call_arena(struct call *call);
/* Of the method whose handler runs: "/csi.v1.Identity/Probe". */
const char *call_path(const struct call *call);
/* That the client has called, as it was given to server_add_service; NULL: one that the server does not know. */
const struct method *call_method(const struct call *call);

/* Something of the handler's own, from one of its functions to the next (call_continue); NULL at first. */
void call_keep(struct call *call, void *kept);
void *call_kept(const struct call *call);

const struct peer *call_peer(const struct call *call);

/* What the client sent; -bin values are decoded for methods that the server knows. */
const struct metadata *call_metadata(const struct call *call);

/* The client has gone, has cancelled, or its deadline has passed: nobody waits for the answer. */
bool call_is_cancelled(const struct call *call);

/* For call_options: calls that are made on behalf of this one. NULL for NULL. */
struct parent_call *call_as_parent(struct call *call);

/* Time that is left, in nanoseconds; UINT64_MAX without a deadline. */
uint64_t call_time_left(const struct call *call);

/* One more among what the client sent, for whoever the call is passed on to. */
void call_add_field(struct call *call, const char *key, const char *value);

/* Metadata of the answer. Headers go out with the first message, trailers with the status. */
MUST_CHECK struct error *call_add_header(struct call *call, const char *key, const void *value,
                                         size_t value_size);
MUST_CHECK struct error *call_add_trailer(struct call *call, const char *key, const void *value,
                                          size_t value_size);

/* Streaming: waits for the client's next message; NULL in *message at the end. It is valid until the next call_recv. */
MUST_CHECK struct error *call_recv(struct call *call, void *message);

/* Streaming: sends a message (`&m->base`); waits while the client does not take what was sent before. */
MUST_CHECK struct error *call_send(struct call *call, const ProtobufCMessage *message);

/*
 * Running the handler that another table has for a method, with its context, on behalf of this call; `request` and `reply` are of the
 * method's types, NULL where its kind has none. For methods that take one message: unary ones, and, where the call itself streams, those that
 * stream their answer. May be nested. UNIMPLEMENTED: the table has no such handler. A handler that is run so may say call_continue: then return
 * NULL at once.
 */
MUST_CHECK struct error *call_delegate(struct call *call, const struct method *method,
                                       const void *handlers, void *context, const void *request,
                                       void *reply);

/*
 * From a handler on the loop that finds that it has to wait: once it has returned NULL, `run` goes on with the call on a worker, with the same request,
 * reply and context (those of now). It may send where the method streams its answer, which a handler on the loop must not. The
 * call ends with RESOURCE_EXHAUSTED when too many calls wait for a thread. Nothing happens if the handler returns an error.
 */
void call_continue(struct call *call,
                   struct error *(*run)(struct call *call, const void *request, void *reply));

/*
 * A call that no client made, for running unary handlers from elsewhere by call_delegate: on a thread that may wait, one at a time; what they leave behind
 * by call_continue or rpc_relay is done when call_delegate returns. It has an arena, the peer "internal", no metadata, and a deadline if timeout_ns
 * is not 0; headers and trailers are taken and dropped. As a parent in call_options it counts as any other call.
 */
struct call *call_new_detached(struct runtime *runtime, uint64_t timeout_ns);
/* Any thread, also the loop's, at any time before call_free_detached. */
void call_cancel_detached(struct call *call);
/* Any thread; before runtime_close. */
void call_free_detached(struct call *call);

/*
 * A detached call that does a part of this one's work, maybe on another thread: it has the whole's context, method and metadata, and at most timeout_ns; 0: no
 * deadline of its own. Not for longer than the whole lasts.
 */
struct call *call_new_part(struct call *whole, uint64_t timeout_ns);
/* The whole's thread, when the part is done: what is in its arena is the whole's from now on. The part is freed. */
void call_join_part(struct call *whole, struct call *part);

#endif
