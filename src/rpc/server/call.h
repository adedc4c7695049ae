/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call as its handler sees it. A handler is a plain function that may block. It has a thread of
 * its own while it runs, or runs on the loop if its service says so; then it must not block. It
 * allocates from the call's arena.
 *
 * Call these functions on the handler's thread while the handler runs, unless stated otherwise.
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
struct charge;
struct method;
struct parent_call;
struct runtime;

/* The context passed to server_add_service or call_delegate. */
void *call_context(const struct call *call);

struct arena *call_arena(struct call *call);
/* The path of the method whose handler runs: "/csi.v1.Identity/Probe". */
const char *call_path(const struct call *call);
/*
 * The method that the client called, as given to server_add_service. NULL: unknown to the server.
 */
const struct method *call_method(const struct call *call);

/*
 * A pointer of the handler's own, for its next function (call_continue); NULL at first. `release`
 * (may be NULL) is called with it on the loop, before the arena is freed or another pointer is set.
 */
void call_set_data(struct call *call, void *data, void (*release)(void *data));
void *call_data(const struct call *call);

const struct peer *call_peer(const struct call *call);

/* The request's metadata; -bin values are decoded for methods that the server knows. */
const struct metadata *call_metadata(const struct call *call);

/*
 * Has the client disconnected or cancelled, or has the deadline passed? Then nobody waits for the
 * answer.
 */
bool call_is_cancelled(const struct call *call);

/* For call_options: makes calls on behalf of this one. NULL for NULL. */
struct parent_call *call_as_parent(struct call *call);

/* Nanoseconds until the deadline; UINT64_MAX without one. */
uint64_t call_time_left(const struct call *call);

/* Adds a field to the request's metadata, for the server that the call is forwarded to. */
void call_add_field(struct call *call, const char *key, const char *value);

/*
 * Adds metadata to the answer. Headers are sent with the first message, trailers with the status.
 */
MUST_CHECK struct error *call_add_header(struct call *call, const char *key, const void *value,
                                         size_t value_size);
MUST_CHECK struct error *call_add_trailer(struct call *call, const char *key, const void *value,
                                          size_t value_size);

/*
 * Charges the client for the call's arena. For a handler on a worker that collects a long answer:
 * call it after each part. RESOURCE_EXHAUSTED: the client holds too much already.
 */
MUST_CHECK struct error *call_charge_arena(struct call *call);
/*
 * For call_options, if the reply goes into the arena of this call: makes room there for a decoded
 * reply of `size` bytes, which is charged like the rest.
 */
struct charge *call_make_room(struct call *call, size_t size);

/*
 * Streaming: blocks until the client's next message arrives; sets *message to NULL at the end. The
 * message is valid until the next call_recv.
 */
MUST_CHECK struct error *call_recv(struct call *call, void *message);

/* Streaming: sends a message (`&m->base`). Blocks while flow control holds back earlier ones. */
MUST_CHECK struct error *call_send(struct call *call, const ProtobufCMessage *message);

/*
 * Runs the handler that another table has for a method, with its context, on behalf of this call.
 * `request` and `reply` are of the method's types, or NULL if its kind has none. Works for unary
 * methods, and for server-streaming ones if the call itself streams. May be nested. UNIMPLEMENTED:
 * the table has no such handler. The delegate may use call_continue; then return NULL at once.
 */
MUST_CHECK struct error *call_delegate(struct call *call, const struct method *method,
                                       const void *handlers, void *context, const void *request,
                                       void *reply);

/*
 * For a handler on the loop that has to block: once it has returned NULL, `run` continues the call
 * on a worker, with the current request, reply and context. `run` may send if the method streams
 * its answer; a handler on the loop must not. The call ends with RESOURCE_EXHAUSTED if too many
 * calls wait for a thread. No effect if the handler returns an error.
 */
void call_continue(struct call *call,
                   struct error *(*run)(struct call *call, const void *request, void *reply));

/*
 * Creates a call without a client, to run unary handlers by call_delegate, one at a time, on a
 * thread that may block. call_delegate returns only when work started by call_continue or rpc_relay
 * is done. The call has an arena, the peer "internal", no metadata, and a deadline unless
 * timeout_ns is 0. Headers and trailers are discarded. It can be a parent in call_options like any
 * other call.
 */
struct call *call_new_detached(struct runtime *runtime, uint64_t timeout_ns);
/* Any thread, including the loop's, any time before call_free_detached. */
void call_cancel_detached(struct call *call);
/* Any thread; before runtime_close. */
void call_free_detached(struct call *call);

/*
 * Creates a detached call for a part of this one's work, possibly on another thread. It has the
 * context, method, metadata and deadline of `whole`, or an earlier deadline unless timeout_ns is 0.
 * What it holds is charged to the client of `whole`. Must end before `whole` does.
 */
struct call *call_new_part(struct call *whole, uint64_t timeout_ns);
/*
 * On the thread of `whole`, when the part is done: moves the part's arena to `whole` and frees the
 * part.
 */
void call_join_part(struct call *whole, struct call *part);

#endif
