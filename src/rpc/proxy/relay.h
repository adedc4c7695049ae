/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays a unary call: a handler changes the request, sends it to another server, and sees the
 * reply before the client does. Everything happens on the loop; no thread blocks.
 *
 *     static struct error *
 *     delete_volume(struct call *call, const Csi__V1__DeleteVolumeRequest *request,
 *                   Csi__V1__DeleteVolumeResponse *reply)
 *     {
 *         Csi__V1__DeleteVolumeRequest *inner = arena_alloc(call_arena(call), sizeof *inner);
 *         *inner = *request;
 *         inner->volume_id = handle;
 *         rpc_relay(call, channel, &(struct relay){.request = &inner->base});
 *         return NULL;
 *     }
 */
#ifndef RPC_PROXY_RELAY_H
#define RPC_PROXY_RELAY_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/error.h"
#include "rpc/client/channel.h"
#include "rpc/server/call.h"

struct relay {
    /*
     * The message to send: of the method's input type, in the call's arena, unknown fields
     * included. NULL: the request as received.
     */
    const ProtobufCMessage *request;

    /*
     * Called exactly once, on the loop, with the call_context of the time of rpc_relay; must not
     * block. Gets one of:
     *   reply   of the method's output type, in the call's arena; may be changed in place, unknown
     *           fields are kept
     *   error   taken over: the server's status (code, message and details), or why there is none.
     *           CANCELLED if the client cancelled or disconnected; the result is then discarded.
     * Returns the status of the answer. NULL answers with `reply` or, after an error, with the
     * reply that the handler was given. It may also call rpc_relay again, or call_continue (`run`
     * gets `reply`), and return NULL. If `finish` is NULL, the answer is forwarded unchanged.
     */
    struct error *(*finish)(struct call *call, void *context, ProtobufCMessage *reply,
                            struct error *error);
    void *context;

    const struct metadata *metadata; /* sent in addition to the client's; NULL: none */
    uint64_t timeout_ns; /* DEADLINE_EXCEEDED after this time; 0: only the call's deadline */
};

/*
 * For the handler of a unary method: after it has returned NULL, the request is sent to the same
 * method of the server behind the channel, with the client's metadata and remaining time.
 * Cancellation is propagated, and so are the answer's headers and trailers. Fields that belong to
 * one hop or to the encoding of the message are not forwarded: te, content-type, content-length,
 * user-agent, host, grpc-timeout, grpc-encoding, grpc-accept-encoding.
 *
 * Does not wait for an unreachable server: UNAVAILABLE. `relay` is copied. The channel must belong
 * to the call's runtime, and the handler must not be a delegate of another method's; otherwise
 * `finish` gets INTERNAL. No effect, not even `finish`, if the handler returns an error.
 */
void rpc_relay(struct call *call, struct channel *channel, const struct relay *relay);

#endif
