/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: watching operations, the router's own and those of the connections' engines.
 *
 * A call that watches all of them has one thread. It holds a watch on each source and waits for one
 * source after the other, a little while each. A thread per source would report changes at once
 * instead of within a quarter of a second, which nobody needs. Other nodes are asked once a second.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "connections/router/peer_watch.h"
#include "connections/router/router_internal.h"
#include "csi/operations.h"

#define LOOK_MS 1000 /* a watch of one operation checks this often whether its client has gone */
#define ROUND_MS 250 /* a watch of all operations looks at every source within this time */
#define MOST_AT_ONCE 100 /* changes of one source before the next source has its turn */

typedef Skycap__V1__Operation operation_message;

/* ---- one source ---- */

/* The router's or an engine's operations, being watched. */
struct source {
    struct connection *connection; /* a reference; NULL: the router's own */
    struct ops_watch *watch;
};

/* `id` is the engine's; NULL: all. */
static struct error *
source_open(struct router *router, struct connection *connection, const char *id,
            struct source *out)
{
    struct ops *ops =
        connection ? connection->spec->driver->operations(connection->driver) : router->ops;
    *out = (struct source){0};
    struct error *error = ops_watch_open(ops, id, &out->watch);
    if (!error && connection)
        out->connection = connection_share(connection);
    return error;
}

/* The watch comes first: releasing the connection may close the engine. */
static void
source_close(struct source *source)
{
    ops_watch_close(source->watch);
    connection_release(source->connection);
    *source = (struct source){0};
}

static struct error *
send(struct call *call, const struct source *source, const operation_record *record,
     struct arena *arena)
{
    operation_message message = SKYCAP__V1__OPERATION__INIT;
    operations_fill(&message, record, arena);
    router_translate_operation(router_of(call), source->connection, arena, &message);
    return call_send(call, &message.base);
}

/* Sends the next change, if there is one before the timeout. */
static struct error *
pass_on_change(struct call *call, const struct source *source, uint32_t timeout_ms,
               bool *has_changed, bool *has_ended)
{
    struct arena arena AUTO(arena_clear);
    operation_record *record;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = ops_watch_next(source->watch, timeout_ms, &arena, &record);
    *has_changed = !error;
    if (error && error->code == CODE_DEADLINE_EXCEEDED) {
        error_free(error);
        return NULL;
    }
    if (error)
        return error;
    *has_ended = record->state != OPERATION_STATE(RUNNING);
    return send(call, source, record, &arena);
}

struct error *
router_watch_operation(struct call *call, struct connection *connection, const char *id)
{
    struct source source AUTO(source_close);
    bool has_changed, has_ended = false;
    struct error *error = source_open(router_of(call), connection, id, &source);
    while (!error && !has_ended && !call_is_cancelled(call))
        error = pass_on_change(call, &source, LOOK_MS, &has_changed, &has_ended);
    return error;
}

/* ---- all sources ---- */

struct sources {
    struct connection_set *set; /* of the sources; NULL: not read yet */
    struct source *items;       /* the router's own comes first */
    size_t count;
};

static void
sources_close(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        source_close(&sources->items[i]);
    free(sources->items);
    connection_set_release(sources->set);
}

static struct error *
add_source(struct sources *sources, struct router *router, struct connection *connection)
{
    sources->items = memory_resize(sources->items, (sources->count + 1) * sizeof *sources->items);
    struct error *error = source_open(router, connection, NULL, &sources->items[sources->count]);
    if (!error)
        sources->count++;
    return error;
}

/* By engine: it stays the same when other parts of the file change. */
static bool
is_watched(const struct sources *sources, const struct driver *driver)
{
    for (size_t i = 0; i < sources->count; i++)
        if (sources->items[i].connection && sources->items[i].connection->driver == driver)
            return true;
    return false;
}

static bool
is_in_force(const struct connection_set *set, const struct connection *connection)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection && set->slots[i].connection->driver == connection->driver)
            return true;
    return false;
}

static void
drop_old_sources(struct sources *sources)
{
    size_t kept = 0;
    for (size_t i = 0; i < sources->count; i++) {
        struct source *source = &sources->items[i];
        if (source->connection && !is_in_force(sources->set, source->connection))
            source_close(source);
        else
            sources->items[kept++] = *source;
    }
    sources->count = kept;
}

static struct error *
refresh_sources(struct sources *sources, struct router *router)
{
    struct connection_set *now = connections_current(router->connections);
    if (now == sources->set) {
        connection_set_release(now);
        return NULL;
    }
    connection_set_release(sources->set);
    sources->set = now;
    drop_old_sources(sources);
    struct error *error = sources->count ? NULL : add_source(sources, router, NULL);
    for (size_t i = 0; i < now->count && !error; i++) {
        struct connection *connection = now->slots[i].connection;
        if (connection && connection->spec->driver->operations &&
            !is_watched(sources, connection->driver))
            error = add_source(sources, router, connection);
    }
    return error;
}

/* Waits for the first change, then sends those that are pending, up to a limit. */
static struct error *
pass_on_changes(struct call *call, const struct source *source, uint32_t timeout_ms)
{
    struct error *error = NULL;
    bool has_changed = true, has_ended;
    for (unsigned i = 0; i < MOST_AT_ONCE && has_changed && !error && !call_is_cancelled(call); i++)
        error = pass_on_change(call, source, i ? 0 : timeout_ms, &has_changed, &has_ended);
    return error;
}

struct error *
router_watch_operations(struct call *call)
{
    struct sources sources AUTO(sources_close) = {0};
    struct peer_watch *peers AUTO(peer_watch_cleanup) = peer_watch_new();
    struct error *error = NULL;
    while (!error && !call_is_cancelled(call)) {
        error = refresh_sources(&sources, router_of(call));
        if (!error)
            error = peer_watch_look(peers, call, sources.set);
        for (size_t i = 0; i < sources.count && !error; i++) {
            uint32_t slice_ms = (uint32_t)(ROUND_MS / sources.count);
            error = pass_on_changes(call, &sources.items[i], slice_ms ? slice_ms : 1);
        }
    }
    return error;
}
