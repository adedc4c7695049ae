/* SPDX-License-Identifier: Apache-2.0 */
/* Passing a call on to another server, stream to stream, without looking at its messages. */
#ifndef RPC_PROXY_PROXY_H
#define RPC_PROXY_PROXY_H

#include "rpc/client/channel.h"
#include "rpc/server/call.h"

/*
 * From a fallback handler: once the handler has returned NULL, the call goes to the server behind the
 * channel. The channel must be of the server's own runtime; the call fails with INTERNAL otherwise.
 */
void rpc_proxy(struct call *call, struct channel *channel);

#endif
