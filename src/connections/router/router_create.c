/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: CreateVolume.
 *
 * If labels select the connection, those that match are tried in order until one creates the
 * volume. The connection is stored before its driver is called (choice_rows.h). A repeated request
 * goes there first, whatever has changed meanwhile, and elsewhere only if that driver says that it
 * has no such volume and no room for it. So a volume is never created twice. The rows are deleted
 * with the volume, or when all connections have refused. A volume that existed before, without rows
 * and without the mark that makes its deletion look for them, gets none.
 */
#include <string.h>

#include "connections/copy/cross_copy.h"
#include "connections/forward/choice_rows.h"
#include "connections/forward/forward.h"
#include "connections/forward/new_volume.h"
#include "connections/forward/route.h"
#include "connections/request/choice.h"
#include "connections/request/global_id.h"
#include "connections/request/map_field.h"
#include "connections/router/across.h"
#include "connections/router/homeless.h"
#include "connections/router/moved.h"
#include "connections/router/placement.h"
#include "connections/router/router_internal.h"
#include "connections/router/snapshot_copies.h"
#include "csi/controller.h"

typedef Csi__V1__CreateVolumeRequest create_request;
typedef Csi__V1__CreateVolumeResponse create_response;

#define CREATE_VOLUME "/csi.v1.Controller/CreateVolume"
#define MAX_NAME 128

/* ---- trying ---- */

/* The connection has certainly not created the volume, and another may be able to. */
static bool
is_worth_another(const struct error *error)
{
    return !error->in_doubt &&
           (error->code == CODE_RESOURCE_EXHAUSTED || error->code == CODE_UNAVAILABLE ||
            error->code == CODE_OUT_OF_RANGE);
}

/* An earlier call may have created the volume, so only the driver's own answer counts. */
static bool
is_not_there(const struct connection *connection, const struct error *error)
{
    bool is_its_word =
        error->from_peer || (connection->spec->driver->speaks_our_ids && !connection->node_address);
    return is_its_word && is_worth_another(error) && error->code != CODE_UNAVAILABLE;
}

/* No connection has created it, and a retry will not help. */
static bool
is_final(const struct error *error)
{
    return error->code == CODE_INVALID_ARGUMENT || error->code == CODE_NOT_FOUND ||
           error->code == CODE_FAILED_PRECONDITION || error->code == CODE_PERMISSION_DENIED;
}

/* The volume exists. Stores where its choice is, unless its deletion would not look for it. */
static struct error *
index_choice(struct router *router, const struct connection *connection, const char *key,
             const char *volume_id, uint64_t *revision, struct arena *arena)
{
    struct global_id id;
    uint64_t any = STORE_ANY;
    bool is_found =
        router->shared == router->store || (global_id_parse(ID_VOLUME, volume_id, &id) &&
                                            choice_rows_are_shared(router, connection, id.handle));
    struct error *error =
        is_found ? choice_rows_write(router, arena_print(arena, "chosen/%s", volume_id), key, &any)
                 : choice_rows_write(router, key, NULL, revision);
    if (error) /* no other connection may be tried */
        error->in_doubt = true;
    return error;
}

/* Our own engines mark the handle. */
static const create_request *
with_mark(const struct connection *connection, const create_request *request, struct arena *arena)
{
    struct map_field field;
    if (!connection->spec->driver->speaks_our_ids)
        return request;
    create_request *marked = (create_request *)arena_copy(arena, request, sizeof *request);
    map_field_find(&marked->base, "parameters", &field);
    struct text_map parameters = map_field_read(&field, arena);
    text_map_set(&parameters, arena, CONTROLLER_CHOSEN, "true");
    map_field_write(&field, &parameters, arena);
    return marked;
}

static struct error *
try_selected(struct call *call, const struct connection_set *set, struct connection *connection,
             const create_request *request, create_response *reply, uint64_t *revision)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    const char *key = choice_rows_key(request->name, arena);
    if (router->shared == router->store)
        atomic_store(&router->has_choices, true);
    struct error *error = choice_rows_write(router, key, connection->place, revision);
    if (!error)
        error = new_volume_create(router, call, set, connection,
                                  with_mark(connection, request, arena), reply);
    return error ? error
                 : index_choice(router, connection, key, reply->volume->volume_id, revision, arena);
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

/* An earlier choice for this name goes first, even if its labels no longer match. */
static void
try_first(struct choice *choice, struct connection *before)
{
    bool is_there = false;
    for (size_t i = 0; i < choice->count; i++)
        is_there |= choice->items[i] == before;
    if (!is_there) /* items has room for all */
        choice->items[choice->count++] = before;
    put_first(choice, before);
}

/* No connection has the volume: deletes the row. Takes and returns the error. */
static struct error *
forget_refused(struct router *router, const char *name, struct arena *arena, uint64_t revision,
               struct error *error)
{
    struct error *failure AUTO(error_cleanup) =
        choice_rows_write(router, choice_rows_key(name, arena), NULL, &revision);
    return failure ? error_wrap(error, "%s", failure->message) : error;
}

static struct error *
create_selected(struct call *call, const struct connection_set *set, struct choice *choice,
                const create_request *request, create_response *reply)
{
    struct arena *arena = call_arena(call);
    struct router *router = router_of(call);
    struct connection *before;
    uint64_t revision;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    /* Two requests for one name could end at two connections. */
    struct error *error = name_lock_take(&router->choosing, "volume", request->name, &lock);
    if (!error)
        error = choice_rows_find(router, set, request->name, arena, &before, &revision);
    if (error)
        return error;
    if (before)
        try_first(choice, before);
    else /* a registry that has lost its data has lost this choice, too */
        error = connection_set_check_missing(set);
    if (error)
        return error;
    const char **reasons = arena_alloc(arena, choice->count * sizeof *reasons);
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
        reasons[i] = arena_string(arena, error->message);
        code = error->code;
        error_free(error);
        csi__v1__create_volume_response__init(reply);
    }
    return forget_refused(router, request->name, arena, revision,
                          error_new(code, "nobody can create the volume: %s",
                                    placement_explain(call, request, choice, reasons)));
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
    if (error && route.own && route.kind == ID_SNAPSHOT && router_of(call)->cluster) {
        error_free(error); /* find_home looks for a copy */
        *out = route.own;
        return NULL;
    }
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

/* Where the volume goes, and where its content comes from (NULL: it is empty). */
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

/* A copy that has begun stays where it is, whatever the labels select now. */
static struct error *
keep_connection(struct call *call, const struct connection_set *set, const char *name,
                struct choice *choice)
{
    struct connection *target;
    struct error *error = cross_copy_find_connection(call, set, name, &target);
    if (target)
        try_first(choice, target);
    return error;
}

/* What the loop passes to the worker. */
struct creation {
    struct forward forward; /* first: it is kept with the call */
    struct connection *source;
    struct choice choice;
};

/* Engines of one connection on several nodes copy from each other. */
static bool
is_of_one_cluster(const struct connection *one, const struct connection *other)
{
    return (one->node_address || other->node_address) &&
           strcmp(one->spec->name, other->spec->name) == 0;
}

static bool
is_lost(const struct connection *connection)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return connection->node_address && !facts->is_ready;
}

/* A snapshot whose node is lost: a node with a copy is as good. Takes the error, if any. */
static void
find_copy(struct call *call, const struct connection_set *set, const struct route *route,
          struct error **error, struct connection **source)
{
    struct connection *found =
        snapshot_copies_find(call, set, (*source)->spec->name, route->handle);
    if (!found)
        return;
    error_free(STEAL(*error));
    *source = found;
}

/* A source whose id does not tell its node, or tells one that is lost. */
static struct error *
find_home(struct call *call, const struct connection_set *set, const create_request *request,
          struct connection **source, bool *is_homeless)
{
    struct route route;
    *is_homeless = false;
    if (!*source)
        return NULL;
    struct error *error =
        route_find(router_of(call), set, &request->volume_content_source->base, &route);
    if (router_of(call)->cluster && route.kind == ID_SNAPSHOT && route.handle &&
        (error ? route.own != NULL : is_lost(*source)))
        find_copy(call, set, &route, &error, source);
    if (error)
        return error;
    if (route.kind == ID_VOLUME && route.handle)
        *source = moved_guess(router_of(call), set, route.handle, *source);
    if (!homeless_is(set, *source, route.handle))
        return NULL;
    *is_homeless = true;
    return homeless_find(call, set, route.kind, route.handle, source);
}

static struct error *
homeless_error(const struct connection *source)
{
    return error_new(
        CODE_FAILED_PRECONDITION,
        "the source is at \"%s\", and was made before that node joined the cluster: it "
        "can be copied only there; take a snapshot of the copy to copy it elsewhere",
        source->place);
}

static struct error *
create_on_worker(struct call *call, const void *in, void *out)
{
    const create_request *request = in;
    struct creation *creation = call_data(call);
    const struct connection_set *set = creation->forward.set;
    struct connection *source = creation->source;
    struct choice *choice = &creation->choice;
    bool is_homeless;
    struct error *error = find_home(call, set, request, &source, &is_homeless);
    if (!error)
        error = placement_find(call, set, request, source, choice);
    if (!error && source && choice->is_selected)
        error = keep_connection(call, set, request->name, choice);
    if (error)
        return error;
    bool is_elsewhere = source && choice->items[0] != source;
    if (is_elsewhere && is_homeless && is_of_one_cluster(source, choice->items[0]))
        return homeless_error(source);
    if (is_elsewhere && !is_of_one_cluster(source, choice->items[0]))
        return across_create(call, set, source, choice, request, out);
    for (size_t i = 0; i < choice->count && !error; i++)
        error = cross_copy_drop_plan(call, set, choice->items[i], request->name);
    if (error)
        return error;
    if (choice->is_selected && (!source || is_of_one_cluster(source, choice->items[0])))
        return create_selected(call, set, choice, request, out);
    return new_volume_create(router_of(call), call, set, choice->items[0], request, out);
}

/* On the loop: no thread is needed if there is one connection to ask, and its driver can relay. */
struct error *
router_create_volume(struct call *call, const void *in, void *out)
{
    create_request *request = (create_request *)in;
    struct creation *creation = arena_zeroed(call_arena(call), sizeof *creation);
    struct forward *f = &creation->forward;
    forward_init(f, call, rules_find(CREATE_VOLUME), request, out);
    struct error *error = choose(call, f->set, request, &creation->source, &creation->choice);
    if (error)
        return error;
    f->connection = creation->choice.items[0];
    f->on_loop = !creation->source && !creation->choice.is_selected &&
                 !atomic_load(&f->router->plans) && forward_can_relay(f);
    if (!f->on_loop) {
        call_continue(call, create_on_worker);
        return NULL;
    }
    error = new_volume_prepare(f->connection, request, call_arena(call));
    return error ? error : forward_run(f);
}
