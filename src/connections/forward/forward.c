/* SPDX-License-Identifier: Apache-2.0 */
/* Forwarding one call: see forward.h. */
#include "connections/forward/forward.h"

#include "base/clock.h"
#include "connections/forward/choice_rows.h"
#include "connections/forward/inline_volumes.h"
#include "connections/forward/route.h"
#include "connections/forward/topology_keys.h"
#include "connections/request/access_modes.h"
#include "connections/request/secrets.h"
#include "connections/request/validation.h"

/* ---- the request ---- */

static struct error *
translate_request(struct forward *f)
{
    struct arena *arena = call_arena(f->call);
    f->started_ns = clock_now_ns();
    f->asked = validation_keep(f->request, arena);
    struct error *error =
        topology_keys_read(f->router, f->set, f->connection, f->method, arena, &f->keys);
    if (!error)
        error =
            route_translate_in(f->router, f->connection, &f->keys, f->call, f->request, &f->rows);
    if (error)
        return error;
    access_modes_translate_in(f->connection, f->method, f->request, arena);
    validation_translate_in(f->connection, f->request, arena);
    secrets_translate_in(f->set, f->connection, f->request, arena);
    return NULL;
}

/* ---- the answer ---- */

static struct error *
translate_answer(const struct forward *f)
{
    struct arena *arena = call_arena(f->call);
    struct error *error =
        route_translate_out(f->router, f->connection, &f->keys, f->reply, f->inline_id, arena);
    if (!error && f->rule->check)
        error = f->rule->check(f->connection, f->reply);
    if (!error)
        validation_translate_out(f->asked, f->request, f->reply, arena);
    return error;
}

static void
count(const struct forward *f, const struct error *error)
{
    struct connection_counters *counters = f->connection->counters;
    uint64_t spent_us = (clock_now_ns() - f->started_ns) / 1000;
    atomic_fetch_add_explicit(&counters->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->microseconds, spent_us, memory_order_relaxed);
    if (error)
        atomic_fetch_add_explicit(&counters->failures, 1, memory_order_relaxed);
}

/* Takes and returns the error. */
static struct error *
forget_handles(const struct forward *f, struct error *error)
{
    struct error *failure = handles_forget(f->router->shared, f->rows, call_arena(f->call));
    if (failure)
        error_free(error);
    return failure ? error_wrap(failure, "forget a long handle") : error;
}

/*
 * Takes the driver's error and returns the client's. Deleting an object that does not exist
 * succeeds. Of ControllerUnpublishVolume and the node's methods NOT_FOUND is an error: a driver
 * that knows that the volume is not attached or staged answers OK. UNIMPLEMENTED of a driver is the
 * same as the lack of the capability, which it should not have claimed; it must not look as if the
 * router lacked the method.
 */
static struct error *
explain(const struct forward *f, struct error *error)
{
    bool is_gone = error && error->code == CODE_NOT_FOUND && f->rule->gone_is_ok;
    bool is_lacking = error && error->code == CODE_UNIMPLEMENTED;
    if (!is_gone && !is_lacking)
        return error;
    error_free(error);
    if (is_lacking && !f->rule->lacking_is_ok)
        return rules_unsupported_error(f->connection, f->method->path);
    if (is_lacking && f->rule->fill_lacking && f->reply)
        f->rule->fill_lacking(f->connection, f->reply);
    return NULL;
}

/* Every call ends here, also one that was not sent. Takes and returns the error. */
static struct error *
conclude(struct forward *f, struct error *error)
{
    if (!error && f->reply)
        error = translate_answer(f);
    if (f->rows && (!error || error->code == CODE_NOT_FOUND))
        error = forget_handles(f, error);
    count(f, error);
    error = explain(f, error);
    if (!error && f->inline_id)
        error = inline_volumes_note(f->router, f->request);
    if (!error && f->chosen_id)
        error =
            choice_rows_forget(f->router, f->chosen_id, f->choice_is_shared, call_arena(f->call));
    return error;
}

static struct error *
conclude_on_worker(struct call *call, const void *request, void *reply)
{
    (void)request;
    struct forward *f = call_data(call);
    f->reply = reply;
    return conclude(f, NULL);
}

static struct error *
conclude_relayed(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct forward *f = context;
    f->reply = reply;
    if (error || route_can_translate_out(f->router, f->connection, reply))
        return conclude(f, error);
    call_continue(call, conclude_on_worker);
    return NULL;
}

/* ---- the call ---- */

static void
release(void *kept)
{
    const struct forward *f = kept;
    connection_set_release((struct connection_set *)f->set);
}

void
forward_init(struct forward *out, struct call *call, const struct rule *rule, const void *request,
             void *reply)
{
    const struct router *router = router_of(call);
    *out = (struct forward){
        .router = router,
        .set = connections_current(router->connections),
        .call = call,
        .method = call_method(call),
        .rule = rule,
        .request = (ProtobufCMessage *)request,
        .reply = reply,
    };
    call_set_data(call, out, release);
}

bool
forward_can_relay(const struct forward *f)
{
    return f->reply && f->connection->spec->driver->relay &&
           topology_keys_are_at_hand(f->router, f->connection, f->method);
}

struct error *
forward_run(struct forward *f)
{
    const struct driver_ops *ops = f->connection->spec->driver;
    struct driver *driver = f->connection->driver;
    struct error *error = translate_request(f);
    if (error)
        return conclude(f, error);
    if (f->on_loop) {
        error = ops->relay(driver, f->call, f->method, f->request, conclude_relayed, f);
        return error ? conclude(f, error) : NULL;
    }
    error = f->reply ? ops->call(driver, f->call, f->method, f->request, f->reply)
                     : ops->stream(driver, f->call, f->method, f->request);
    return conclude(f, error);
}

struct error *
forward_call(const struct router *router, const struct connection_set *set,
             struct connection *connection, struct call *call, const struct method *method,
             ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct forward f = {
        .router = router,
        .set = set,
        .connection = connection,
        .call = call,
        .method = method,
        .rule = rules_find(method->path),
        .request = request,
        .reply = reply,
    };
    return forward_run(&f);
}

struct error *
forward_own(const struct router *router, const struct connection_set *set,
            struct connection *connection, struct call *call, const char *path,
            const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct arena *arena = call_arena(call);
    const struct method *method = service_find_method(path);
    struct text_map keys;
    struct error *error = topology_keys_read(router, set, connection, method, arena, &keys);
    if (!error)
        error = connection->spec->driver->call(connection->driver, call, method, request, reply);
    return error ? error : route_translate_out(router, connection, &keys, reply, NULL, arena);
}
