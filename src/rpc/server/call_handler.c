/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the handler of a call, on a worker or on the loop: see call_internal.h. */
#include <assert.h>

#include "message/message_json.h"
#include "rpc/server/call_internal.h"

/* ---- handler's thread ---- */

void
call_log_message(const struct call *call, const char *what, const ProtobufCMessage *message)
{
    const struct log *log = call->loop->log;
    if (!log_wants(log, LOG_DEBUG))
        return;
    struct buffer text AUTO(buffer_clear) = {0};
    message_json_print(message, MESSAGE_JSON_HIDE_SECRETS, &text);
    log_debug(log, what, LOG_TEXT("method", call->header.path),
              LOG_TEXT("peer", call->peer->address), LOG_TEXT("body", buffer_text(&text)));
}

/* Decompresses one message at a time for all calls: see admission.h. */
static struct error *
inflate(struct call *call, struct message **message)
{
    if (!(*message)->is_compressed)
        return NULL;
    pthread_mutex_t *inflating = &call->loop->admission.inflating;
    pthread_mutex_lock(inflating);
    struct error *error =
        message_inflate(message, call->budget, call->server->options.max_message_bytes);
    pthread_mutex_unlock(inflating);
    return error;
}

struct error *
call_unpack(struct call *call, struct message *message, struct arena *arena, struct charge *charge,
            ProtobufCMessage **out)
{
    *out = NULL;
    struct error *error = inflate(call, &message);
    if (!error)
        error = framing_unpack(call->target->method->input, message, arena, charge, out);
    message_free(message, call->budget);
    if (!error)
        call_log_message(call, "request", *out);
    return error;
}

/* No effect if a heavy request was unpacked before its handler runs. */
static struct error *
unpack_request(struct call *call)
{
    if (method_is_client_streaming(call->target->method) || !call->request)
        return NULL;
    ProtobufCMessage *request;
    struct error *error =
        call_unpack(call, STEAL(call->request), &call->arena, &call->decoded, &request);
    call->scope.request = request;
    return error;
}

static void
make_reply(struct call *call)
{
    if (method_is_server_streaming(call->target->method))
        return;
    const ProtobufCMessageDescriptor *type = call->target->method->output;
    call->output = arena_alloc(&call->arena, type->sizeof_message);
    protobuf_c_message_init(type, call->output);
    call->scope.reply = call->output;
}

static struct error *
run_method(struct call *call)
{
    struct error *error = unpack_request(call);
    if (error)
        return error;
    make_reply(call);
    const struct server_method *target = call->target;
    return target->method->run(target->handlers, call, call->scope.request, call->output);
}

struct error *
call_run_continuation(struct call *call)
{
    struct continuation continuation = call->continuation;
    call->continuation = (struct continuation){0};
    call->scope = continuation.scope;
    return continuation.run(call, call->scope.request, call->scope.reply);
}

struct error *
call_pack_reply(struct call *call)
{
    if (!call->output || !call->server || call->continuation.run || call->next.begin)
        return NULL;
    call_log_message(call, "reply", call->output);
    return framing_pack(call->output, &call->reply);
}

static struct error *
run_handler(struct call *call)
{
    struct error *error = call->continuation.run ? call_run_continuation(call)
                          : call->target         ? run_method(call)
                                                 : call->server->fallback.run(call);
    return error ? error : call_pack_reply(call);
}

/* ---- loop thread ---- */

static struct error *submit(struct call *call);

static bool
take_stream_slot(struct call *call)
{
    call->has_stream_slot = budget_take(&call->peer->account->streams, 1);
    return call->has_stream_slot;
}

static void
release_stream_slot(struct call *call)
{
    if (call->has_stream_slot)
        budget_give_back(&call->peer->account->streams, 1);
    call->has_stream_slot = false;
}

/*
 * Starts what the handler has chosen as the next step. Returns false if the call is to be answered
 * now.
 */
static bool
take_next_step(struct call *call)
{
    struct next_step next = call->next;
    bool continues = next.begin && !call->result;
    call->next = (struct next_step){0};
    if (continues)
        next.begin(call); /* may free the call */
    else if (next.begin)
        next.drop(call);
    return continues;
}

static void
answer(struct call *call)
{
    call->state = call->state == CALL_WAITING ? CALL_OPEN : CALL_RETURNED;
    call_reply_status(call, STEAL(call->result));
    call_maybe_free(call);
}

void
call_finish(struct call *call)
{
    if (call->detached_ended) {
        call->detached_ended(call);
        return;
    }
    release_stream_slot(call);
    if (call->continuation.run && !call->result) {
        struct error *error = submit(call);
        if (!error)
            return;
        call->result = error;
    }
    bool is_parked = call->park_cancelled && !call->result;
    if (!is_parked && !take_next_step(call))
        answer(call);
}

static void
finish_task(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, finished);
    loop_note_work_done(call->loop);
    if (call->target)
        handler_time_add(&call->target->time, call->handler_ns);
    call_finish(call);
}

struct error *
call_cancelled_error(void)
{
    return error_new(CODE_CANCELLED, "the client disconnected or cancelled the call");
}

/* A call that was cancelled before its turn came has no effect. */
static void
run_work(struct work *work)
{
    struct call *call = CONTAINER_OF(work, struct call, work);
    uint64_t start = timers_now();
    bool is_too_late = !call->continuation.run && call_is_cancelled(call);
    call->result = is_too_late ? call_cancelled_error() : run_handler(call);
    call->handler_ns = timers_now() - start;
    call->finished.run = finish_task;
    loop_post(call->loop, &call->finished);
}

static struct error *
queue_is_full(void)
{
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "too many calls are waiting for a thread; try again later");
}

/* Returns NULL if the handler has a thread or will get one. */
static struct error *
submit(struct call *call)
{
    if (call->has_mailbox && !take_stream_slot(call))
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "too many streaming calls are running; try again later");
    call->work.run = run_work;
    call->work.is_short =
        call->target && !call->has_mailbox && handler_time_is_short(&call->target->time);
    if (loop_submit_work(call->loop, &call->work)) {
        call->state = CALL_RUNNING;
        return NULL;
    }
    release_stream_slot(call);
    return queue_is_full();
}

static bool
is_for_loop(const struct call *call)
{
    return call->target ? call->target->on_loop : call->server->fallback.on_loop;
}

static void
start_handler(struct call *call)
{
    if (is_for_loop(call)) {
        call->state = CALL_ON_LOOP;
        call->result = run_handler(call);
        call->state = CALL_RUNNING;
        call_finish(call);
        return;
    }
    /* After submit, call->result belongs to the worker's thread. */
    struct error *error = submit(call);
    if (error) {
        call->result = error;
        call_finish(call);
    }
}

/* ---- heavy requests, unpacked on a worker first: see admission.h ---- */

static bool
is_heavy(const struct call *call)
{
    const struct message *request = call->request;
    return request &&
           (request->is_compressed || (request->size > ADMISSION_LOOP_BYTES && is_for_loop(call)));
}

static void
end_unpacking(struct task *task)
{
    struct call *call = CONTAINER_OF(task, struct call, finished);
    loop_note_work_done(call->loop);
    admission_end_turn(&call->loop->admission);
    if (!call->result && call_is_cancelled(call))
        call->result = call_cancelled_error();
    if (call->result)
        call_finish(call);
    else
        start_handler(call);
}

static void
run_unpacking(struct work *work)
{
    struct call *call = CONTAINER_OF(work, struct call, work);
    call->result = unpack_request(call);
    call->finished.run = end_unpacking;
    loop_post(call->loop, &call->finished);
}

static bool
begin_unpacking(struct turn *turn)
{
    struct call *call = CONTAINER_OF(turn, struct call, turn);
    call->work.run = run_unpacking;
    call->work.is_short = false;
    if (call_is_cancelled(call))
        call->result = call_cancelled_error();
    else if (!loop_submit_work(call->loop, &call->work))
        call->result = queue_is_full();
    else
        return true;
    call_finish(call);
    return false;
}

void
call_run(struct call *call)
{
    assert(call->state == CALL_OPEN);
    call->state = CALL_WAITING;
    if (!is_heavy(call)) {
        start_handler(call);
        return;
    }
    call->turn.begin = begin_unpacking;
    admission_await_turn(&call->loop->admission, call->peer->account, &call->turn);
}
