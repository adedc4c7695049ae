/* SPDX-License-Identifier: Apache-2.0 */
/* Passing a call on: see pass.h. */
#include "connections/pass.h"

#include <string.h>
#include <time.h>

#include "connections/access_modes.h"
#include "connections/inline_volumes.h"
#include "connections/map_field.h"
#include "connections/route.h"
#include "connections/topology_keys.h"
#include "connections/validation.h"

/* ---- what a driver has ---- */

static uint64_t
offered(const struct rule *rule, const struct connection *connection)
{
    switch (rule->need) {
    case NEED_CONTROLLER:
        return connection_controller_capabilities(connection);
    case NEED_NODE:
        return connection_node_capabilities(connection);
    case NEED_GROUP:
        return connection_group_capabilities(connection);
    case NEED_SERVICE:
        return connection_services(connection);
    case NEED_NOTHING:
        break;
    }
    return UINT64_MAX;
}

static struct error *
lacking_error(const struct connection *connection, const char *path)
{
    const char *name = strrchr(path, '/');
    return error_new(CODE_INVALID_ARGUMENT,
                     "the driver behind connection \"%s\" does not support %s",
                     connection->spec->name, name ? name + 1 : path);
}

bool
pass_is_possible(const struct rule *rule, const struct connection *connection, struct error **error)
{
    *error = NULL;
    if (!connection_is_known(connection) || (offered(rule, connection) >> rule->capability & 1))
        return true;
    if (!rule->lacking_is_ok)
        *error = lacking_error(connection, rule->path);
    return false;
}

/* ---- secrets ---- */

/* Of a connection, also of one whose file is wrong; NULL: it is no connection's. */
static const char *
find_owner_name(const struct connection_set *set, const char *name)
{
    const struct connection *owner = connection_set_find(set, name);
    for (size_t i = 0; !owner && i < set->count; i++)
        if (strcmp(set->slots[i].name, name) == 0)
            return set->slots[i].name;
    return owner ? owner->spec->name : NULL;
}

/* The name of the connection that a key is meant for, `NAME.KEY`; NULL: it is for whoever gets the request. */
static const char *
find_owner(const struct connection_set *set, const char *key, const char **rest)
{
    char name[SPEC_MAX_ALIAS + 1];
    const char *dot = strchr(key, '.');
    size_t size = dot ? (size_t)(dot - key) : 0;
    if (size == 0 || size > SPEC_MAX_ALIAS)
        return NULL;
    memcpy(name, key, size);
    name[size] = '\0';
    *rest = dot + 1;
    return find_owner_name(set, name);
}

/* Those for everybody first: a secret that names the connection counts more than one of the same key that does not. */
static struct text_map
filter_secrets(const struct connection_set *set, const struct connection *connection,
               const struct text_map *secrets, struct arena *arena)
{
    enum spec_secrets policy = connection->spec->secrets;
    if (policy == SPEC_SECRETS_NONE || !secrets->count)
        return (struct text_map){0};
    struct text_pair *kept = arena_alloc(arena, 2 * secrets->count * sizeof *kept);
    struct text_pair *own = kept + secrets->count;
    size_t kept_count = 0, own_count = 0;
    for (size_t i = 0; i < secrets->count; i++) {
        const struct text_pair *pair = &secrets->pairs[i];
        const char *rest = "";
        const char *owner = find_owner(set, pair->key, &rest);
        if (owner && strcmp(owner, connection->spec->name) == 0)
            own[own_count++] = (struct text_pair){rest, pair->value};
        else if (!owner && policy == SPEC_SECRETS_ALL)
            kept[kept_count++] = *pair;
    }
    memmove(kept + kept_count, own, own_count * sizeof *own);
    return text_map_of(kept, kept_count + own_count, arena);
}

struct text_map
pass_secrets_of(const struct connection_set *set, const struct connection *connection,
                const struct text_map *secrets, struct arena *arena)
{
    struct text_map own = {0};
    for (size_t i = 0; i < secrets->count; i++) {
        const struct text_pair *pair = &secrets->pairs[i];
        const char *rest;
        const char *owner = find_owner(set, pair->key, &rest);
        if (owner && strcmp(owner, connection->spec->name) == 0)
            text_map_set(&own, arena, pair->key, pair->value);
    }
    return own;
}

static void
scope_secrets(const struct connection_set *set, const struct connection *connection,
              ProtobufCMessage *request, struct arena *arena)
{
    struct map_field field;
    if (!map_field_find(request, "secrets", &field) || *field.count == 0)
        return;
    struct text_map secrets = map_field_read(&field, arena);
    struct text_map kept = filter_secrets(set, connection, &secrets, arena);
    map_field_write(&field, &kept, arena);
}

/* ---- the call ---- */

static uint64_t
now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/*
 * Takes the error and gives what the client is told: that a driver lacks a method must not look as if this one did, and what was to be taken away and is not
 * there is gone, as was wanted.
 */
static struct error *
conclude(const struct connection *connection, const char *path, uint64_t started_us,
         struct error *error)
{
    struct connection_counters *counters = connection->counters;
    atomic_fetch_add_explicit(&counters->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->microseconds, now_us() - started_us, memory_order_relaxed);
    if (!error)
        return NULL;
    atomic_fetch_add_explicit(&counters->failures, 1, memory_order_relaxed);
    bool is_gone = error->code == CODE_NOT_FOUND && router_find_rule(path)->unknown_id_is_ok;
    if (!is_gone && error->code != CODE_UNIMPLEMENTED)
        return error;
    error_free(error);
    return is_gone ? NULL : lacking_error(connection, path);
}

/* `*keys` are those that the answer is to be translated with. */
static struct error *
translate_request(const struct router *router, const struct connection_set *set,
                  const struct connection *connection, struct call *call,
                  const struct method *method, ProtobufCMessage *request, struct text_map *keys,
                  struct handles_row **rows)
{
    struct arena *arena = call_arena(call);
    struct error *error = topology_keys_read(router, set, connection, method, arena, keys);
    if (!error)
        error = route_translate_in(router, connection, keys, call, request, rows);
    if (error)
        return error;
    access_modes_translate_in(connection, method, request, arena);
    validation_translate_in(connection, request, arena);
    scope_secrets(set, connection, request, arena);
    return NULL;
}

/* Takes and gives the error. */
static struct error *
forget(const struct router *router, const struct handles_row *rows, struct arena *arena,
       struct error *error)
{
    struct error *failure = handles_forget(router->options.shared, rows, arena);
    if (failure)
        error_free(error);
    return failure ? error_wrap(failure, "forget a long handle") : error;
}

struct error *
pass_call(const struct router *router, const struct connection_set *set,
          struct connection *connection, struct call *call, const struct method *method,
          ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct arena *arena = call_arena(call);
    const struct driver_ops *ops = connection->spec->driver;
    const char *inline_id = inline_volumes_id(request);
    struct handles_row *rows;
    struct text_map keys;
    const Csi__V1__ValidateVolumeCapabilitiesRequest *asked = validation_keep(request, arena);
    uint64_t started_us = now_us();
    struct error *error =
        translate_request(router, set, connection, call, method, request, &keys, &rows);
    if (error)
        return error;
    if (reply)
        error = ops->call(connection->driver, call, method, request, reply);
    else
        error = ops->stream(connection->driver, call, method, request);
    if (!error && reply)
        error = route_translate_out(router, connection, &keys, reply, inline_id, arena);
    if (!error)
        validation_translate_out(asked, request, reply, arena);
    if (!error || error->code == CODE_NOT_FOUND)
        error = forget(router, rows, arena, error);
    return conclude(connection, method->path, started_us, error);
}

struct error *
pass_own(const struct router *router, const struct connection_set *set,
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

/* A call that is relayed; in its arena, with references of its own. */
struct passage {
    const struct router *router;
    struct connection_set *set;
    struct connection *connection;
    const struct method *method;
    pass_check *check;
    struct text_map keys;
    const ProtobufCMessage *sent;
    const Csi__V1__ValidateVolumeCapabilitiesRequest *asked; /* NULL: another method's */
    uint64_t started_us;
};

static struct passage *
passage_new(const struct router *router, struct connection_set *set, struct connection *connection,
            const struct method *method, pass_check *check, const ProtobufCMessage *request,
            struct arena *arena)
{
    struct passage *passage = arena_alloc(arena, sizeof *passage);
    *passage = (struct passage){
        .router = router,
        .set = connection_set_share(set),
        .connection = connection_share(connection),
        .method = method,
        .check = check,
        .sent = request,
        .asked = validation_keep(request, arena),
        .started_us = now_us(),
    };
    return passage;
}

/* Takes and gives the error. */
static struct error *
passage_end(struct passage *passage, struct error *error)
{
    error = conclude(passage->connection, passage->method->path, passage->started_us, error);
    connection_release(passage->connection);
    connection_set_release(passage->set);
    return error;
}

static struct error *
translate_relayed(const struct router *router, const struct connection *connection,
                  const struct text_map *keys, pass_check *check, ProtobufCMessage *reply,
                  struct arena *arena)
{
    struct error *error = route_translate_out(router, connection, keys, reply, NULL, arena);
    return error || !check ? error : check(connection, reply);
}

/* An answer whose ids need rows. Nothing is held on its behalf: there may be no thread for it. */
struct late_answer {
    const struct router *router;
    const char *connection;
    pass_check *check;
    struct text_map keys; /* in the call's arena */
};

static struct error *
translate_on_worker(struct call *call, const void *request, void *reply)
{
    (void)request;
    const struct late_answer *late = call_kept(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(late->router->options.connections);
    const struct connection *connection = connection_set_find(set, late->connection);
    if (!connection)
        return error_new(CODE_UNAVAILABLE, "connection \"%s\" has just been removed",
                         late->connection);
    return translate_relayed(late->router, connection, &late->keys, late->check, reply,
                             call_arena(call));
}

static void
translate_later(struct call *call, const struct passage *passage)
{
    struct arena *arena = call_arena(call);
    struct late_answer *late = arena_alloc(arena, sizeof *late);
    const char *name = arena_string(arena, passage->connection->spec->name);
    *late = (struct late_answer){passage->router, name, passage->check, passage->keys};
    call_keep(call, late);
    call_continue(call, translate_on_worker);
}

static struct error *
finish_relay(struct call *call, void *context, ProtobufCMessage *reply, struct error *error)
{
    struct passage *passage = context;
    if (!error && !route_can_translate_out(passage->router, passage->connection, reply))
        translate_later(call, passage);
    else if (!error)
        error = translate_relayed(passage->router, passage->connection, &passage->keys,
                                  passage->check, reply, call_arena(call));
    if (!error)
        validation_translate_out(passage->asked, passage->sent, reply, call_arena(call));
    return passage_end(passage, error);
}

struct error *
pass_relay(const struct router *router, struct connection_set *set, struct connection *connection,
           struct call *call, const struct method *method, ProtobufCMessage *request,
           pass_check *check)
{
    struct arena *arena = call_arena(call);
    struct passage *passage = passage_new(router, set, connection, method, check, request, arena);
    struct handles_row *none; /* ids with rows need a thread */
    struct error *error =
        translate_request(router, set, connection, call, method, request, &passage->keys, &none);
    if (!error)
        error = connection->spec->driver->relay(connection->driver, call, method, request,
                                                finish_relay, passage);
    return error ? passage_end(passage, error) : NULL;
}
