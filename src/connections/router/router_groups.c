/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: a group of snapshots. All volumes of the group must be on one node, but they may have
 * been created on several, and have moved since. The nodes that they are probably on cost nothing;
 * the registry is asked only if these differ, or if the one node does not have all volumes.
 */
#include <string.h>

#include "connections/forward/forward.h"
#include "connections/request/global_id.h"
#include "connections/router/homeless.h"
#include "connections/router/moved.h"
#include "connections/router/router_internal.h"

typedef Csi__V1__CreateVolumeGroupSnapshotRequest group_request;

/* A volume of the group. */
struct member {
    const char *id;
    struct global_id parts;
    struct connection *connection; /* that has it, probably; NULL: not known */
};

struct members {
    struct member *items;
    size_t count;
};

/* The request is translated in place later: this is read before. */
static struct members
read_members(const struct forward *f)
{
    const group_request *request = (const group_request *)f->request;
    struct members members = {
        arena_zeroed(call_arena(f->call), request->n_source_volume_ids * sizeof(struct member)), 0};
    for (size_t i = 0; i < request->n_source_volume_ids; i++) {
        struct member *member = &members.items[members.count];
        member->id = request->source_volume_ids[i];
        members.count += global_id_parse(ID_VOLUME, member->id, &member->parts);
    }
    return members;
}

/* ---- where they are ---- */

/* Never waits. */
static void
guess(const struct forward *f, struct member *member)
{
    struct connection *home = NULL;
    struct error *lost AUTO(error_cleanup) =
        connection_set_locate(f->set, member->parts.connection, member->parts.handle, &home);
    if (!lost && home && !homeless_is(f->set, home, member->parts.handle))
        member->connection = moved_guess(f->router, f->set, member->parts.handle, home);
}

/* Takes the error of a home that is not a node of the cluster. */
static struct error *
find_moved(const struct forward *f, struct member *member, struct connection *home,
           struct error *lost)
{
    const struct connection *own = connection_set_find(f->set, member->parts.connection);
    const char *name = own ? own->spec->name : member->parts.connection;
    struct moved moved;
    struct error *error = moved_find(f->call, f->set, name, member->parts.handle, &moved);
    if (!error && moved.is_deleted)
        error = error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", member->id);
    member->connection = moved.connection ? moved.connection : home;
    if (!error && !member->connection)
        error = lost ? STEAL(lost)
                     : error_new(CODE_NOT_FOUND, "there is no connection \"%s\" for \"%s\"",
                                 member->parts.connection, member->id);
    error_free(lost);
    return error;
}

static struct error *
find(const struct forward *f, struct member *member)
{
    struct connection *home = NULL;
    struct error *lost =
        connection_set_locate(f->set, member->parts.connection, member->parts.handle, &home);
    if (lost || !home || !homeless_is(f->set, home, member->parts.handle))
        return find_moved(f, member, home, lost);
    member->connection = home;
    return homeless_find(f->call, f->set, ID_VOLUME, member->parts.handle, &member->connection);
}

static struct error *
find_all(const struct forward *f, struct members *members)
{
    struct error *error = NULL;
    for (size_t i = 0; !error && i < members->count; i++)
        error = find(f, &members->items[i]);
    return error;
}

/* The first volume that is elsewhere than the first; NULL: all are together. */
static const struct member *
find_other(const struct members *members)
{
    for (size_t i = 1; i < members->count; i++)
        if (members->items[i].connection != members->items[0].connection)
            return &members->items[i];
    return NULL;
}

/* ---- the call ---- */

static const char *
node_of(const struct member *member, struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) =
        driver_facts(member->connection->driver);
    return arena_string(arena, facts->node_id ? facts->node_id : member->connection->place);
}

static struct error *
spread_error(const struct forward *f, const struct member *one, const struct member *other)
{
    struct arena *arena = call_arena(f->call);
    return error_new(
        CODE_INVALID_ARGUMENT,
        "the volumes of a group must be on one node, but \"%s\" is on node \"%s\", and "
        "\"%s\" on node \"%s\": move them together first",
        one->id, node_of(one, arena), other->id, node_of(other, arena));
}

/* No node can take the snapshots, but one may have taken them before. */
static struct error *
refuse(struct forward *f, const struct member *one, const struct member *other)
{
    struct error *refusal = spread_error(f, one, other);
    f->connection = one->connection;
    struct error *error = forward_run(f);
    if (error) {
        error_free(error);
        return moved_find_taken(f, refusal);
    }
    error_free(refusal);
    return NULL;
}

static bool
may_have_moved(const struct error *error)
{
    return error->code == CODE_NOT_FOUND || (error->code == CODE_UNAVAILABLE && !error->in_doubt);
}

struct error *
router_run_group(struct forward *f)
{
    struct members members = read_members(f);
    struct error *error = NULL;
    for (size_t i = 0; i < members.count; i++)
        guess(f, &members.items[i]);
    struct connection *first = members.items[0].connection;
    if (first && !find_other(&members)) {
        f->connection = first;
        error = forward_run(f);
        if (!error || !may_have_moved(error))
            return error;
    }
    struct error *failure = find_all(f, &members);
    const struct member *other = failure ? NULL : find_other(&members);
    bool is_elsewhere = !failure && (other || members.items[0].connection != first);
    if (error && !is_elsewhere) {
        error_free(failure);
        return error;
    }
    error_free(error);
    if (failure)
        return failure;
    if (other)
        return refuse(f, &members.items[0], other);
    f->connection = members.items[0].connection;
    return forward_run(f);
}
