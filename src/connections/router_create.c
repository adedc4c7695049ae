/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: new volumes, and how much room there is for them.
 *
 * Where labels choose, the connections that fit are tried in their order until one takes the volume. Which one is tried is written down before it is
 * asked (`choice/NAME`): a repeated request goes there first, whatever has changed meanwhile, and elsewhere only if that one says that it has no
 * such volume and no room for it; so a volume is never made twice. The row goes when the volume is deleted (`chosen/ID` names the row), or when
 * all have refused.
 */
#include <string.h>

#include "connections/choice.h"
#include "connections/cross_copy.h"
#include "connections/map_field.h"
#include "connections/parallel_calls.h"
#include "connections/pass.h"
#include "connections/route.h"
#include "connections/router_internal.h"
#include "connections/topology.h"
#include "connections/topology_keys.h"

typedef Csi__V1__CreateVolumeRequest create_request;
typedef Csi__V1__CreateVolumeResponse create_response;

#define MAX_NAME 128

static const struct rule create_rule = {
    .path = "/csi.v1.Controller/CreateVolume",
    .need = NEED_CONTROLLER,
    .capability = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_VOLUME,
};

static const struct rule capacity_rule = {
    .need = NEED_CONTROLLER,
    .capability = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__GET_CAPACITY,
    .lacking_is_ok = true,
};

/* ---- the request as one connection is to see it ---- */

/* Changes the request. */
static struct error *
prepare(struct connection *connection, create_request *request, struct arena *arena)
{
    struct error *error;
    if (!pass_is_possible(&create_rule, connection, &error))
        return error;
    choice_merge_parameters(connection, &request->base, arena);
    return NULL;
}

static struct error *
check_made(const struct connection *connection, const ProtobufCMessage *message)
{
    const create_response *reply = (const create_response *)message;
    if (!reply->volume || !reply->volume->volume_id[0])
        return error_new(CODE_INTERNAL,
                         "the driver behind connection \"%s\" has made a volume without an id",
                         connection->spec->name);
    return NULL;
}

struct error *
router_create_on(struct router *router, struct call *call, const struct connection_set *set,
                 struct connection *connection, const create_request *asked, create_response *reply)
{
    struct arena *arena = call_arena(call);
    create_request *request = (create_request *)arena_copy(arena, asked, sizeof *asked);
    struct error *error = prepare(connection, request, arena);
    if (!error)
        error = pass_call(router, set, connection, call, service_find_method(create_rule.path),
                          &request->base, &reply->base);
    return error ? error : check_made(connection, &reply->base);
}

/* ---- remembering the choice ---- */

static char *
choice_key(const char *name, struct arena *arena)
{
    return arena_print(arena, "choice/%s", name);
}

/* `*revision` is that of the row: another process may choose for the same name, and who is second is ABORTED. */
static struct error *
recall_choice(struct router *router, const struct connection_set *set, const char *name,
              struct arena *arena, struct connection **out, uint64_t *revision)
{
    struct store_entry entry;
    bool found;
    *out = NULL;
    *revision = STORE_ABSENT;
    struct error *error =
        store_find(router->options.shared, choice_key(name, arena), arena, &entry, &found);
    if (error || !found)
        return error;
    *revision = entry.revision;
    const char *chosen = arena_copy(arena, entry.value, entry.value_size);
    *out = connection_set_find(set, chosen);
    if (*out)
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "connection \"%s\", which may have made the volume, is not there", chosen);
}

/* `*revision` is that of the row, before and after. */
static struct error *
write_row(struct router *router, const char *key, const char *value, uint64_t *revision)
{
    struct store_change change = {key, (const uint8_t *)value, value ? strlen(value) : 0,
                                  *revision};
    return store_write(router->options.shared, &change, 1, revision);
}

void
router_look_for_choices(struct router *router)
{
    struct arena arena;
    struct store_list rows;
    if (router->options.shared !=
        router->options.store) /* other processes may write some any time */
        return;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error AUTO(error_cleanup) =
        store_list(router->options.store, "chosen/", NULL, 1, &arena, &rows);
    if (!error)
        atomic_store(&router->has_choices, rows.count > 0);
    arena_clear(&arena);
}

static struct error *
forget_choice_in(struct store *store, const char *volume_id, struct arena *arena)
{
    struct store_entry entry;
    bool found;
    const char *chosen = arena_print(arena, "chosen/%s", volume_id);
    struct error *error = store_find(store, chosen, arena, &entry, &found);
    if (error || !found)
        return error;
    const char *row = arena_copy(arena, entry.value, entry.value_size);
    struct store_change changes[] = {{row, NULL, 0, STORE_ANY}, {chosen, NULL, 0, STORE_ANY}};
    return store_write(store, changes, COUNT_OF(changes), NULL);
}

/* Choices are shared; copies, which have such rows too, are the process' own. */
struct error *
router_forget_choice(struct router *router, const char *volume_id, struct arena *arena)
{
    const struct router_options *options = &router->options;
    struct error *error = forget_choice_in(options->store, volume_id, arena);
    if (!error && options->shared != options->store)
        error = forget_choice_in(options->shared, volume_id, arena);
    return error;
}

/* ---- trying ---- */

/* The connection has certainly not made the volume, and another may have what it lacks. */
static bool
is_worth_another(const struct error *error)
{
    return !error->in_doubt &&
           (error->code == CODE_RESOURCE_EXHAUSTED || error->code == CODE_UNAVAILABLE ||
            error->code == CODE_OUT_OF_RANGE);
}

/* It was asked before, and may have made it then: only its own word is good enough. */
static bool
is_not_there(const struct connection *connection, const struct error *error)
{
    bool is_its_word = error->from_peer || connection->spec->driver->speaks_our_ids;
    return is_its_word && is_worth_another(error) && error->code != CODE_UNAVAILABLE;
}

/* No connection has made it, and none will when it is asked again. */
static bool
is_final(const struct error *error)
{
    return error->code == CODE_INVALID_ARGUMENT || error->code == CODE_NOT_FOUND ||
           error->code == CODE_FAILED_PRECONDITION || error->code == CODE_PERMISSION_DENIED;
}

static struct error *
try_selected(struct call *call, const struct connection_set *set, struct connection *connection,
             const create_request *request, create_response *reply, uint64_t *revision)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    uint64_t any = STORE_ANY;
    const char *key = choice_key(request->name, arena);
    struct error *error = write_row(router, key, connection->spec->name, revision);
    if (!error)
        error = router_create_on(router, call, set, connection, request, reply);
    atomic_store(&router->has_choices, true);
    if (!error)
        error =
            write_row(router, arena_print(arena, "chosen/%s", reply->volume->volume_id), key, &any);
    return error;
}

static void
put_first(struct choice *choice, struct connection *first)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->items[i] != first)
            continue;
        memmove(&choice->items[1], &choice->items[0], i * sizeof choice->items[0]);
        choice->items[0] = first;
        return;
    }
}

/* The connection that was asked before for this name goes first, also if its labels do not fit any more. */
static void
ask_first(struct choice *choice, struct connection *before)
{
    bool is_there = false;
    for (size_t i = 0; i < choice->count; i++)
        is_there |= choice->items[i] == before;
    if (!is_there) /* there is room for all */
        choice->items[choice->count++] = before;
    put_first(choice, before);
}

/* Takes the error. Where no connection has the volume there is nothing to be remembered. */
static struct error *
forget_refused(struct router *router, const char *name, struct arena *arena, uint64_t revision,
               struct error *error)
{
    struct error *failure AUTO(error_cleanup) =
        write_row(router, choice_key(name, arena), NULL, &revision);
    return failure ? error_wrap(error, "%s", failure->message) : error;
}

static struct error *
create_selected(struct call *call, const struct connection_set *set, struct choice *choice,
                const create_request *request, create_response *reply)
{
    struct arena *arena = call_arena(call);
    struct router *router = router_of(call);
    struct connection *before;
    const char *reasons = "";
    uint64_t revision;
    struct key *key AUTO(keys_release) = NULL;
    /* Of two for one name each could find another that takes it. */
    struct error *error = keys_take(&router->choosing, "volume", request->name, &key);
    if (!error)
        error = recall_choice(router, set, request->name, arena, &before, &revision);
    if (error)
        return error;
    if (before)
        ask_first(choice, before);
    enum code code = CODE_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < choice->count; i++) {
        struct connection *connection = choice->items[i];
        error = try_selected(call, set, connection, request, reply, &revision);
        if (!error)
            return NULL;
        if (connection == before ? !is_not_there(connection, error) : !is_worth_another(error))
            return connection != before && is_final(error)
                       ? forget_refused(router, request->name, arena, revision, error)
                       : error;
        reasons = arena_print(arena, "%s%s%s: %s", reasons, reasons[0] ? "; " : "",
                              connection->spec->name, error->message);
        code = error->code;
        error_free(error);
        csi__v1__create_volume_response__init(reply);
    }
    return forget_refused(router, request->name, arena, revision,
                          error_new(code, "no connection takes the volume: %s", reasons));
}

/* ---- CreateVolume ---- */

static struct error *
find_source(struct call *call, const struct connection_set *set, const create_request *request,
            struct connection **out)
{
    struct route route;
    *out = NULL;
    if (!request->volume_content_source)
        return NULL;
    struct error *error =
        route_find(router_of(call), set, &request->volume_content_source->base, &route);
    if (!error && route.unknown_id)
        error = error_new(CODE_NOT_FOUND, "there is no source \"%s\"", route.unknown_id);
    *out = route.connection;
    return error;
}

static struct error *
check_name(const char *name)
{
    size_t size = strlen(name);
    if (size == 0)
        return error_new(CODE_INVALID_ARGUMENT, "name is missing");
    if (size > MAX_NAME)
        return error_new(CODE_INVALID_ARGUMENT, "name has %zu bytes; at most %d are allowed", size,
                         MAX_NAME);
    return NULL;
}

/* Where the volume is to go, and where its content comes from (NULL: from nowhere). */
static struct error *
choose(struct call *call, const struct connection_set *set, const create_request *request,
       struct connection **source, struct choice *out)
{
    struct arena *arena = call_arena(call);
    struct map_field field;
    struct error *error = check_name(request->name);
    if (!error)
        error = find_source(call, set, request, source);
    if (error)
        return error;
    map_field_find((ProtobufCMessage *)&request->base, "parameters", &field);
    struct text_map parameters = map_field_read(&field, arena);
    error = choice_make(set, &parameters, *source, arena, out);
    if (!error)
        put_first(out, *source);
    return error;
}

/* A copy that was begun goes on where it is, whatever the labels say now. */
static struct error *
keep_place(struct call *call, const struct connection_set *set, const char *name,
           struct choice *choice)
{
    struct connection *place;
    struct error *error = cross_copy_find_place(call, set, name, &place);
    if (place)
        ask_first(choice, place);
    return error;
}

static struct error *
create_on_worker(struct call *call, const void *in, void *out)
{
    const create_request *request = in;
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    struct connection *source;
    struct choice choice;
    struct error *error = choose(call, set, request, &source, &choice);
    if (!error && source && choice.is_selected)
        error = keep_place(call, set, request->name, &choice);
    if (error)
        return error;
    if (source && choice.items[0] != source)
        return cross_copy_volume(call, set, source, choice.items[0], request, out);
    for (size_t i = 0; i < choice.count && !error; i++)
        error = cross_copy_drop_plan(call, set, choice.items[i], request->name);
    if (error)
        return error;
    if (choice.is_selected && !source)
        return create_selected(call, set, &choice, request, out);
    return router_create_on(router, call, set, choice.items[0], request, out);
}

/* On the loop: where there is but one place for the volume and its driver can relay, no thread is needed. */
struct error *
router_create_volume(struct call *call, const void *in, void *out)
{
    (void)out;
    create_request *request = (create_request *)in;
    struct router *router = router_of(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    struct connection *source;
    struct choice choice;
    struct error *error = choose(call, set, request, &source, &choice);
    if (error)
        return error;
    struct connection *connection = choice.items[0];
    /* There is always one; the analyzer does not see it. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (source || choice.is_selected || atomic_load(&router->plans) ||
        !connection->spec->driver->relay ||
        !topology_keys_are_at_hand(router, connection, call_method(call))) {
        call_continue(call, create_on_worker);
        return NULL;
    }
    error = prepare(connection, request, call_arena(call));
    return error ? error
                 : pass_relay(router, set, connection, call, call_method(call), &request->base,
                              check_made);
}

/* ---- GetCapacity ---- */

static struct error *
capacity_of(struct call *call, const struct connection_set *set, struct connection *connection,
            const Csi__V1__GetCapacityRequest *asked, Csi__V1__GetCapacityResponse *reply)
{
    struct arena *arena = call_arena(call);
    struct error *error;
    if (!topology_fits(connection, asked->accessible_topology, arena))
        return NULL;
    if (!pass_is_possible(&capacity_rule, connection, &error)) {
        reply->available_capacity = connection->spec->capacity_bytes;
        return NULL;
    }
    Csi__V1__GetCapacityRequest *request =
        (Csi__V1__GetCapacityRequest *)arena_copy(arena, asked, sizeof *asked);
    choice_merge_parameters(connection, &request->base, arena);
    return pass_call(router_of(call), set, connection, call, call_method(call), &request->base,
                     &reply->base);
}

static void
add_capacity(Csi__V1__GetCapacityResponse *sum, const Csi__V1__GetCapacityResponse *part)
{
    if (__builtin_add_overflow(sum->available_capacity, part->available_capacity,
                               &sum->available_capacity))
        sum->available_capacity = INT64_MAX;
    if (part->maximum_volume_size &&
        (!sum->maximum_volume_size ||
         sum->maximum_volume_size->value < part->maximum_volume_size->value))
        sum->maximum_volume_size = part->maximum_volume_size;
    if (part->minimum_volume_size &&
        (!sum->minimum_volume_size ||
         sum->minimum_volume_size->value > part->minimum_volume_size->value))
        sum->minimum_volume_size = part->minimum_volume_size;
}

/* Of the connection that is named, of all that fit the labels, of the default one; without any of these, of all. */
static struct error *
choose_for_capacity(const struct connection_set *set, const struct text_map *parameters,
                    struct arena *arena, struct choice *out)
{
    bool names_one = text_map_find(parameters, CHOICE_NAME) ||
                     text_map_find(parameters, CHOICE_SELECTOR) || connection_set_default(set);
    if (names_one)
        return choice_make(set, parameters, NULL, arena, out);
    *out = (struct choice){.items = arena_alloc(arena, (set->count + 1) * sizeof(void *))};
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection)
            out->items[out->count++] = set->slots[i].connection;
    return NULL;
}

/* The part of one connection. */
struct capacity_part {
    const struct connection_set *set;
    struct connection *connection;
    const Csi__V1__GetCapacityRequest *asked;
    Csi__V1__GetCapacityResponse reply;
};

static struct error *
ask_capacity(struct call *call, void *context)
{
    struct capacity_part *part = context;
    return capacity_of(call, part->set, part->connection, part->asked, &part->reply);
}

/* Of several, one that is down has no room now. */
static void
add_capacities(struct call *call, const struct connection_set *set, const struct choice *choice,
               const Csi__V1__GetCapacityRequest *asked, Csi__V1__GetCapacityResponse *sum)
{
    struct arena *arena = call_arena(call);
    struct capacity_part *parts = arena_alloc(arena, choice->count * sizeof *parts);
    struct parallel_call *calls = arena_alloc(arena, choice->count * sizeof *calls);
    for (size_t i = 0; i < choice->count; i++) {
        parts[i] = (struct capacity_part){set, choice->items[i], asked,
                                          CSI__V1__GET_CAPACITY_RESPONSE__INIT};
        calls[i] = (struct parallel_call){ask_capacity, &parts[i], NULL};
    }
    parallel_calls_run(call, calls, choice->count, parallel_calls_share_ns(call, 1));
    for (size_t i = 0; i < choice->count; i++) {
        if (!calls[i].error)
            add_capacity(sum, &parts[i].reply);
        error_free(calls[i].error);
    }
}

struct error *
router_get_capacity(struct call *call, const void *in, void *out)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    struct map_field field;
    struct choice choice;
    map_field_find((ProtobufCMessage *)in, "parameters", &field);
    struct text_map parameters = map_field_read(&field, arena);
    struct error *error = choose_for_capacity(set, &parameters, arena, &choice);
    if (error)
        return error;
    if (choice.count == 1)
        return capacity_of(call, set, choice.items[0], in, out);
    add_capacities(call, set, &choice, in, out);
    return NULL;
}
