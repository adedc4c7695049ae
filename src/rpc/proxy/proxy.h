/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards a call to another server, stream to stream, without decoding its messages. */
#ifndef RPC_PROXY_PROXY_H
#define RPC_PROXY_PROXY_H

#include "rpc/client/channel.h"
#include "rpc/server/call.h"

/*
 * For a fallback handler: after it has returned NULL, the call is forwarded to the server behind
 * the channel. The channel must belong to the server's own runtime; otherwise the call fails with
 * INTERNAL.
 */
void rpc_proxy(struct call *call, struct channel *channel);

#endif
