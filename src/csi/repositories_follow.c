/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that last as long as an operation on a repository: see repositories_internal.h. */
#include "csi/repositories_internal.h"
#include "message/message_field.h"

struct following {
    struct call *call;
    bool has_result; /* the message with the result was sent */
};

static bool
is_result(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, "is_result");
    return *(const protobuf_c_boolean *)message_field_value(message, field);
}

static struct error *
take(void *context, const ProtobufCMessage *message)
{
    struct following *following = context;
    struct error *error = call_send(following->call, message);
    following->has_result = !error && is_result(message);
    return error;
}

static bool
is_gone(void *context)
{
    const struct following *following = context;
    return call_is_cancelled(following->call);
}

struct error *
repositories_follow(struct call *call, struct repository_task *task)
{
    struct following following = {.call = call};
    const struct repository_follower follower = {take, is_gone, &following};
    struct error *error = repository_task_follow(task, &follower);
    /* A verify that has found something has failed as an operation; the client has the result. */
    if (error && error->code == CODE_DATA_LOSS && following.has_result)
        error = error_forgive(error, CODE_DATA_LOSS);
    return error;
}
