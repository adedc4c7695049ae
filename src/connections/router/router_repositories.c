/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: skycap.v1.Repositories. A snapshot is exported by the engine that has it, on this
 * node or another one, and imported by the engine that shall have the volume. Everything else is
 * done by one engine of this node, whichever: all have the same repositories.
 */
#include <string.h>

#include "connections/request/global_id.h"
#include "connections/router/homeless.h"
#include "connections/router/router_internal.h"
#include "csi/checks.h"
#include "volumes/handle.h"

/* ---- engines ---- */

static struct error *
find_engine(const struct connection_set *set, struct connection **out)
{
    *out = connection_set_engine(set);
    if (*out)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "repositories need a connection with the driver local, and there is none");
}

static struct error *
refuse_driver(const struct connection *connection)
{
    return error_new(CODE_UNIMPLEMENTED,
                     "connection \"%s\" has the driver %s, whose snapshots cannot be exported: "
                     "copy the volume to a connection with the driver local, and export a snapshot "
                     "of the copy",
                     connection->spec->name, connection->spec->driver->name);
}

/* Calls the method of the call there. Says which other node has failed. */
static struct error *
ask(struct call *call, struct connection *connection, const ProtobufCMessage *request,
    ProtobufCMessage *reply)
{
    const struct driver_ops *driver = connection->spec->driver;
    struct error *error = driver->call(connection->driver, call,
                                       service_find_method(call_path(call)), request, reply);
    if (!error || !connection->node_address)
        return error;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return error_wrap(error, "node \"%s\"", facts->node_id);
}

/* On an engine of this node. `reply` NULL: the method streams its answer. */
static struct error *
run_here(struct call *call, const ProtobufCMessage *request, ProtobufCMessage *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct connection *connection;
    struct error *error = find_engine(set, &connection);
    if (error)
        return error;
    if (reply)
        return ask(call, connection, request, reply);
    return connection->spec->driver->stream(connection->driver, call,
                                            service_find_method(call_path(call)), request);
}

/* ---- ids ---- */

/* An engine's id, "s:local/HANDLE" or that of an operation, becomes that of the connection. */
static void
translate(enum id_kind kind, const char *connection, struct arena *arena, char **id)
{
    const char *handle = ids_operation(kind, *id);
    if (handle)
        *id = global_id_print(kind, connection, handle, arena);
}

/* ---- export ---- */

/* A name becomes the id. */
static struct error *
find_id(struct call *call, const char *text, const char **out)
{
    struct global_id parts;
    Skycap__V1__GetSnapshotRequest request = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetSnapshotResponse reply = SKYCAP__V1__GET_SNAPSHOT_RESPONSE__INIT;
    *out = text;
    if (global_id_parse(ID_SNAPSHOT, text, &parts))
        return NULL;
    request.snapshot = (char *)text;
    struct error *error = router_inventory_handlers.get_snapshot.run(call, &request, &reply);
    if (!error)
        *out = reply.snapshot->snapshot->snapshot_id;
    return error;
}

static struct error *
find_snapshot(struct call *call, const struct connection_set *set, const char *text,
              struct connection **connection, const char **handle)
{
    const char *id;
    struct global_id parts;
    struct error *error = checks_id("snapshot", text);
    if (!error)
        error = find_id(call, text, &id);
    if (error)
        return error;
    if (!global_id_parse(ID_SNAPSHOT, id, &parts))
        return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", text);
    error = connection_set_locate(set, parts.connection, parts.handle, connection);
    if (!error && *connection && homeless_is(set, *connection, parts.handle))
        error = homeless_find(call, set, ID_SNAPSHOT, parts.handle, connection);
    if (error)
        return error;
    if (!*connection)
        return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", text);
    *handle = parts.handle;
    return (*connection)->spec->driver->speaks_our_ids ? NULL : refuse_driver(*connection);
}

static struct error *export(struct call *call, const Skycap__V1__ExportSnapshotRequest *request,
                            Skycap__V1__ExportSnapshotReply *reply)
{
    struct arena *arena = call_arena(call);
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct connection *connection;
    const char *handle;
    Skycap__V1__ExportSnapshotRequest asked = *request;
    struct error *error = find_snapshot(call, set, request->snapshot, &connection, &handle);
    if (error)
        return error;
    asked.snapshot = ids_print(ID_SNAPSHOT, handle, arena);
    error = ask(call, connection, &asked.base, &reply->base);
    if (error)
        return error;
    translate(ID_SNAPSHOT, connection->spec->name, arena, &reply->operation);
    if (reply->export)
        translate(ID_VOLUME, connection->spec->name, arena, &reply->export->volume_id);
    return NULL;
}

/* ---- import ---- */

/* The engine of another node: of this name, or, without one, of the same name as ours, or any. */
static struct connection *
find_elsewhere(const struct connection_set *set, const char *node, const char *name)
{
    char home[HANDLE_HOME_SIZE];
    const struct connection *ours = connection_set_engine(set);
    struct connection *found = NULL;
    handle_print_home(node, home);
    for (size_t i = 0; i < set->elsewhere_count; i++) {
        struct connection *one = set->elsewhere[i];
        const char *at = strchr(one->place, '@');
        if (!at || !one->spec->driver->speaks_our_ids || strcmp(at + 1, home) != 0 ||
            (name[0] && strcmp(one->spec->name, name) != 0))
            continue;
        if (!found || (ours && strcmp(one->spec->name, ours->spec->name) == 0))
            found = one;
    }
    return found;
}

static struct error *
find_target(const struct router *router, const struct connection_set *set,
            const Skycap__V1__ImportSnapshotRequest *request, struct connection **out)
{
    const char *name = request->connection;
    if (request->node[0] && strcmp(request->node, router->node_id) != 0) {
        struct error *error = connection_set_check_nodes(set);
        *out = error ? NULL : find_elsewhere(set, request->node, name);
        if (error || *out)
            return error;
        return error_new(CODE_NOT_FOUND, "there is no node \"%s\" with %s%s%s", request->node,
                         name[0] ? "a connection \"" : "a connection with the driver local", name,
                         name[0] ? "\" and the driver local" : "");
    }
    if (!name[0])
        return find_engine(set, out);
    *out = connection_set_find(set, name);
    if (!*out)
        return error_new(CODE_NOT_FOUND, "there is no connection \"%s\"", name);
    if ((*out)->spec->driver->speaks_our_ids)
        return NULL;
    return error_new(CODE_UNIMPLEMENTED,
                     "connection \"%s\" has the driver %s: a snapshot is imported to a connection "
                     "with the driver local; copy the volume from there",
                     name, (*out)->spec->driver->name);
}

/* A volume of the name that is elsewhere. What cannot be asked now is forgiven. */
static struct error *
check_name(struct call *call, const struct connection_set *set, const struct connection *target,
           const char *name)
{
    Skycap__V1__GetVolumeRequest request = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse reply = SKYCAP__V1__GET_VOLUME_RESPONSE__INIT;
    struct connection *connection = NULL;
    struct global_id parts;
    request.volume = (char *)name;
    struct error *error AUTO(error_cleanup) =
        router_inventory_handlers.get_volume.run(call, &request, &reply);
    if (error || !global_id_parse(ID_VOLUME, reply.volume->volume->volume_id, &parts))
        return NULL;
    error = connection_set_locate(set, parts.connection, parts.handle, &connection);
    if (error || !connection || connection == target)
        return NULL;
    return error_new(CODE_ALREADY_EXISTS, "there is a volume \"%s\" already, %s", name,
                     reply.volume->volume->volume_id);
}

static struct error *
import(struct call *call, const Skycap__V1__ImportSnapshotRequest *request,
       Skycap__V1__ImportSnapshotReply *reply)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router_of(call)->connections);
    struct connection *target;
    Skycap__V1__ImportSnapshotRequest asked = *request;
    struct error *error = checks_name("name", request->name);
    if (!error)
        error = find_target(router_of(call), set, request, &target);
    if (!error)
        error = check_name(call, set, target, request->name);
    if (error)
        return error;
    asked.node = asked.connection = (char *)"";
    error = ask(call, target, &asked.base, &reply->base);
    if (!error)
        translate(ID_VOLUME, target->spec->name, call_arena(call), &reply->volume_id);
    return error;
}

/* ---- on this node ---- */

static struct error *
init(struct call *call, const Skycap__V1__InitRepositoryRequest *request,
     Skycap__V1__InitRepositoryReply *reply)
{
    return run_here(call, &request->base, &reply->base);
}

static struct error *
list(struct call *call, const Skycap__V1__ListRepositoriesRequest *request,
     Skycap__V1__ListRepositoriesReply *reply)
{
    return run_here(call, &request->base, &reply->base);
}

static struct error *
stats(struct call *call, const Skycap__V1__RepositoryStatsRequest *request,
      Skycap__V1__RepositoryStatsReply *reply)
{
    return run_here(call, &request->base, &reply->base);
}

/* Records do not say which connection their volume had. */
static struct error *
list_exports(struct call *call, const Skycap__V1__ListExportsRequest *request,
             Skycap__V1__ListExportsReply *reply)
{
    struct error *error = run_here(call, &request->base, &reply->base);
    for (size_t i = 0; !error && router_of(call)->has_files && i < reply->n_exports; i++)
        reply->exports[i]->volume_id = (char *)"";
    return error;
}

static struct error *
remove_export(struct call *call, const Skycap__V1__RemoveExportRequest *request,
              Skycap__V1__RemoveExportReply *reply)
{
    return run_here(call, &request->base, &reply->base);
}

static struct error *
verify(struct call *call, const Skycap__V1__VerifyRepositoryRequest *request)
{
    return run_here(call, &request->base, NULL);
}

static struct error *
prune(struct call *call, const Skycap__V1__PruneRepositoryRequest *request)
{
    return run_here(call, &request->base, NULL);
}

static struct error *
rebuild(struct call *call, const Skycap__V1__RebuildRepositoryRequest *request)
{
    return run_here(call, &request->base, NULL);
}

static struct error *
drill(struct call *call, const Skycap__V1__DrillRequest *request)
{
    return run_here(call, &request->base, NULL);
}

void
router_print_drills(struct router *router, struct buffer *out)
{
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct connection *connection = connection_set_engine(set);
    if (connection && connection->spec->driver->print_drills)
        connection->spec->driver->print_drills(connection->driver, out);
}

const struct skycap_v1_repositories router_repositories_handlers = {
    .init = {init},
    .list = {list},
    .stats = {stats},
    .list_exports = {list_exports},
    .export = {export},
    .import = {import},
    .remove = {remove_export},
    .verify = {verify},
    .prune = {prune},
    .rebuild = {rebuild},
    .drill = {drill},
};
