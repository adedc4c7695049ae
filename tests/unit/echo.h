/* SPDX-License-Identifier: Apache-2.0 */
/* A service that sends each message of a stream back as it comes. */
#ifndef UNIT_ECHO_H
#define UNIT_ECHO_H

#include "proto/goplugin.rpc.h"
#include "rpc/server/call.h"

static inline struct error *
echo_messages(struct call *call)
{
    for (;;) {
        Plugin__ConnInfo *message;
        struct error *error = call_recv(call, &message);
        if (error || !message)
            return error;
        error = call_send(call, &message->base);
        if (error)
            return error;
    }
}

#endif
