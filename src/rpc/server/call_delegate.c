/* SPDX-License-Identifier: Apache-2.0 */
/* Delegating a call to the handlers of another table: see call.h. */
#include "rpc/server/call_internal.h"

struct error *
call_delegate(struct call *call, const struct method *method, const void *handlers, void *context,
              const void *request, void *reply)
{
    if (!method->exists(handlers))
        return error_new(CODE_UNIMPLEMENTED, "%s is not served here", method->path);
    if (method->kind != METHOD_UNARY && !call->has_mailbox)
        return error_new(CODE_INTERNAL, "%s is a streaming method, but the call is unary",
                         method->path);
    struct scope before = call->scope;
    call->scope = (struct scope){context, method, request, reply};
    struct error *error = method->run(handlers, call, request, reply);
    call->scope = before;
    return call->server ? error : call_detached_complete(call, method, reply, error);
}
