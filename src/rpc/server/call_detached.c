/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls without a client: see call.h.
 *
 * LIFE. The creating thread asks the loop to free the call by a task. Tasks run in order, so what
 * the thread requested before (cancellation, the end of a child) is done by then.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/client/client_call_internal.h"
#include "rpc/runtime/runtime_internal.h"
#include "rpc/server/call_internal.h"

struct detached {
    struct call call; /* must be first */
    struct peer peer;
    sem_t relay_ended;
};

static void
wake(struct call *call)
{
    sem_post(&((struct detached *)call)->relay_ended);
}

static struct call *
new_on_loop(struct loop *loop, struct account *account, uint64_t timeout_ns)
{
    struct detached *detached = memory_zeroed(sizeof *detached);
    struct call *call = &detached->call;
    call->loop = loop;
    call->state = CALL_RUNNING;
    call->detached_ended = wake;
    call->peer = &detached->peer;
    snprintf(call->peer->address, sizeof call->peer->address, "internal");
    call->peer->account = call->parent.account = account_share(account);
    call_set_budget(call, &account->bytes);
    call->started_at = timers_now();
    if (timeout_ns && timeout_ns < UINT64_MAX - call->started_at)
        call->parent.deadline_at = call->started_at + timeout_ns;
    request_init(&call->header);
    call->header.path = "";
    arena_init(&call->arena, NULL, 0, SIZE_MAX);
    sem_init(&detached->relay_ended, 0, 0);
    return call;
}

struct call *
call_new_detached(struct runtime *runtime, uint64_t timeout_ns)
{
    struct loop *loop = runtime_loop(runtime);
    return new_on_loop(loop, loop->admission.own, timeout_ns);
}

struct call *
call_new_part(struct call *whole, uint64_t timeout_ns)
{
    struct call *part = new_on_loop(whole->loop, whole->parent.account, timeout_ns);
    part->scope = whole->scope;
    part->target = whole->target;
    uint64_t deadline_at = whole->parent.deadline_at;
    if (deadline_at && (!part->parent.deadline_at || deadline_at < part->parent.deadline_at))
        part->parent.deadline_at = deadline_at;
    part->header.metadata = whole->header.metadata;
    return part;
}

void
call_join_part(struct call *whole, struct call *part)
{
    arena_absorb(&whole->arena, &part->arena);
    whole->decoded.size += part->decoded.size;
    part->decoded.size = 0;
    call_free_detached(part);
}

/* ---- continuations and relays ---- */

static void
begin_next(void *argument)
{
    struct call *call = argument;
    struct next_step next = call->next;
    call->next = (struct next_step){0};
    next.begin(call);
}

static void
drop_next(void *argument)
{
    struct call *call = argument;
    struct next_step next = call->next;
    call->next = (struct next_step){0};
    next.drop(call);
}

static struct error *
wait_for_next(struct call *call)
{
    loop_run(call->loop, begin_next, call);
    while (sem_wait(&((struct detached *)call)->relay_ended) != 0)
        continue;
    return STEAL(call->result);
}

struct error *
call_detached_complete(struct call *call, const struct method *method, void *reply,
                       struct error *error)
{
    struct scope before = call->scope;
    while (!error && (call->continuation.run || call->next.begin))
        error = call->continuation.run ? call_run_continuation(call) : wait_for_next(call);
    if (call->next.begin)
        loop_run(call->loop, drop_next, call);
    call->continuation = (struct continuation){0};
    call->scope = before;
    const ProtobufCMessage *relayed = STEAL(call->output);
    if (!error && relayed)
        memcpy(reply, relayed, method->output->sizeof_message);
    return error;
}

/* ---- cancel and free ---- */

static void
cancel_on_loop(struct task *task)
{
    client_call_cancel_children(&CONTAINER_OF(task, struct call, mailbox_task)->parent);
}

void
call_cancel_detached(struct call *call)
{
    if (atomic_exchange_explicit(&call->parent.is_cancelled, true, memory_order_acq_rel))
        return;
    call->mailbox_task.run = cancel_on_loop;
    loop_post(call->loop, &call->mailbox_task);
}

static void
free_on_loop(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, finished);
    call_set_data(call, NULL, NULL);
    arena_clear(&call->arena);
    charge_clear(&call->decoded);
    account_release(call->peer->account);
    sem_destroy(&((struct detached *)call)->relay_ended);
    free(call);
}

void
call_free_detached(struct call *call)
{
    if (!call)
        return;
    call->finished.run = free_on_loop;
    loop_post(call->loop, &call->finished);
}
