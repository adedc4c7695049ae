/* SPDX-License-Identifier: Apache-2.0 */
/* A call as its handler sees it: see call.h. */
#include <string.h>

#include "rpc/server/call_internal.h"

void *
call_context(const struct call *call)
{
    return call->scope.context;
}

struct arena *
call_arena(struct call *call)
{
    return &call->arena;
}

const char *
call_path(const struct call *call)
{
    return call->scope.method ? call->scope.method->path : call->header.path;
}

const struct method *
call_method(const struct call *call)
{
    return call->target ? call->target->method : NULL;
}

void
call_set_data(struct call *call, void *data, void (*release)(void *data))
{
    if (call->release_data)
        call->release_data(call->data);
    call->data = data;
    call->release_data = release;
}

void *
call_data(const struct call *call)
{
    return call->data;
}

const struct peer *
call_peer(const struct call *call)
{
    return call->peer;
}

const struct metadata *
call_metadata(const struct call *call)
{
    return &call->header.metadata;
}

void
call_add_field(struct call *call, const char *key, const char *value)
{
    metadata_add_bytes(&call->header.metadata, &call->arena, key, strlen(key), value,
                       strlen(value));
}

bool
call_is_cancelled(const struct call *call)
{
    /* A server's call is cancelled by its deadline timer, which answers the client first. */
    return atomic_load_explicit(&call->parent.is_cancelled, memory_order_acquire) ||
           (!call->server && call_time_left(call) == 0);
}

struct parent_call *
call_as_parent(struct call *call)
{
    return call ? &call->parent : NULL;
}

uint64_t
call_time_left(const struct call *call)
{
    if (!call->parent.deadline_at)
        return UINT64_MAX;
    uint64_t now = timers_now();
    return call->parent.deadline_at > now ? call->parent.deadline_at - now : 0;
}

struct error *
call_add_header(struct call *call, const char *key, const void *value, size_t value_size)
{
    if (call->sent_any)
        return error_new(CODE_FAILED_PRECONDITION,
                         "header \"%s\": the headers were already sent with the first message",
                         key);
    return metadata_add(&call->reply_headers, &call->arena, key, value, value_size);
}

struct error *
call_add_trailer(struct call *call, const char *key, const void *value, size_t value_size)
{
    return metadata_add(&call->reply_trailers, &call->arena, key, value, value_size);
}

static struct charge *
charge_of_worker(struct call *call)
{
    call->decoded.free = ADMISSION_WORK_BYTES;
    return &call->decoded;
}

struct error *
call_charge_arena(struct call *call)
{
    if (charge_arena(charge_of_worker(call), &call->arena, 0))
        return NULL;
    return error_new(
        CODE_RESOURCE_EXHAUSTED,
        "the memory limit for answers is reached; ask for less at a time, or try again "
        "later");
}

struct charge *
call_make_room(struct call *call, size_t size)
{
    if (call->arena.limit < call->arena.used + size)
        call->arena.limit = call->arena.used + size;
    return charge_of_worker(call);
}

void
call_continue(struct call *call,
              struct error *(*run)(struct call *call, const void *request, void *reply))
{
    call->continuation = (struct continuation){.run = run, .scope = call->scope};
}
