/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of rpc/ knows of client calls. The calls themselves are in channel.h. */
#ifndef RPC_CLIENT_CALL_H
#define RPC_CLIENT_CALL_H

struct call;

/* Loop thread: the calls that a handler makes on behalf of `parent` end with CANCELLED. */
void client_call_cancel_children(struct call *parent);

#endif
