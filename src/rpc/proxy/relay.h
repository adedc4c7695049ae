/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing one message on: a handler looks at the request of a unary call, changes it, sends it to another server, and sees the
 * answer before the client does. It all happens on the loop, without a thread that waits.
 *
 *     static struct error *
 *     delete_volume(struct call *call, const Csi__V1__DeleteVolumeRequest *request, Csi__V1__DeleteVolumeResponse *reply)
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
    /* What to send: of the method's input type, in the call's arena. NULL: what came. Unknown fields go along. */
    const ProtobufCMessage *request;

    /*
     * Runs exactly once, on the loop, where it must not wait, with the call_context that there was at rpc_relay. Gets the answer, one of these two:
     *   reply   of the method's output type, in the call's arena; may be changed in place, unknown fields are kept
     *   error   taken: what the server answered (code, message and details), or why there is no answer. It is CANCELLED when the
     *           client has cancelled or gone; whatever is returned then reaches nobody.
     * Returns what to answer; NULL: `reply`, or, after an error, the reply that the handler was given. It may also say rpc_relay
     * once more, or call_continue (`run` gets `reply`), and return NULL. NULL instead of a function: the answer goes back as it came.
     */
    struct error *(*finish)(struct call *call, void *context, ProtobufCMessage *reply,
                            struct error *error);
    void *context;

    const struct metadata *metadata; /* sent beside the client's own; NULL: none */
    uint64_t
        timeout_ns; /* DEADLINE_EXCEEDED after so long; 0: only the call's own deadline counts */
};

/*
 * From the handler of a unary method: once it has returned NULL, the request goes to the server behind the channel, to the same
 * method, with the client's metadata and what is left of its time. Cancelling crosses over, and so do the answer's headers
 * and trailers. Told anew are the fields that belong to one hop or to the message: te, content-type and -length, user-agent, host, grpc-timeout, grpc-encoding,
 * grpc-accept-encoding.
 *
 * It does not wait for a server that is not there: UNAVAILABLE. `relay` is copied. The channel must be of the call's own runtime; INTERNAL, by
 * `finish`, otherwise, and where another method's handler has been delegated to. Nothing happens, not even `finish`, if the handler
 * returns an error.
 */
void rpc_relay(struct call *call, struct channel *channel, const struct relay *relay);

#endif
