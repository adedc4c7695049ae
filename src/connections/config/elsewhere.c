/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of other nodes: see elsewhere.h. */
#include "connections/config/elsewhere.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/protocol.h"
#include "csi/ids.h"
#include "drivers/oim_peer.h"
#include "drivers/peer.h"

#define DEFAULT_MAX_CALLS 64
#define DEFAULT_TIMEOUT_MS 300000

/* ---- one connection ---- */

/* As that of this node with the same name, if there is one. */
static struct connection_spec *
copy_spec(const struct connection *own, const char *name, const struct driver_ops *driver,
          struct arena *arena)
{
    struct connection_spec *spec = arena_zeroed(arena, sizeof *spec);
    spec->name = arena_string(arena, name);
    spec->driver = driver;
    spec->capacity_bytes = SPEC_CAPACITY_UNLIMITED;
    spec->max_calls = own ? own->spec->max_calls : DEFAULT_MAX_CALLS;
    spec->timeout_ms = own ? own->spec->timeout_ms : DEFAULT_TIMEOUT_MS;
    if (!own)
        return spec;
    spec->parameters = text_map_copy(&own->spec->parameters, arena);
    spec->labels = text_map_copy(&own->spec->labels, arena);
    spec->priority = own->spec->priority;
    spec->capacity_bytes = own->spec->capacity_bytes;
    spec->secrets = own->spec->secrets;
    spec->without_controller = own->spec->without_controller;
    spec->without_group = own->spec->without_group;
    return spec;
}

/* Segments are attributes whose names have a prefix. */
static struct text_map
read_topology(const struct member *member, struct arena *arena)
{
    const size_t skip = sizeof CLUSTER_TOPOLOGY - 1;
    struct text_map topology = {0};
    for (size_t i = 0; i < member->attributes.count; i++) {
        const struct text_pair *pair = &member->attributes.pairs[i];
        if (strncmp(pair->key, CLUSTER_TOPOLOGY, skip) == 0)
            text_map_set(&topology, arena, pair->key + skip, pair->value);
    }
    return topology;
}

/* Why the node cannot be called; NULL: it can. */
static const char *
trouble_of(const struct member *member, struct arena *arena)
{
    char when[64];
    struct tm parts;
    time_t seen = (time_t)(member->seen_ms / 1000);
    if (!member->is_expired)
        return protocol_trouble(text_map_find(&member->attributes, CLUSTER_PROTOCOL), arena);
    if (member->is_missing)
        return "is not registered any more: start it, or see skycap node list";
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seen, &parts));
    return arena_print(arena, "has not renewed its registration since %s", when);
}

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The driver of the old set, if nothing that it was opened with has changed; else NULL. */
static struct driver *
share_driver(const struct connection_set *old, const char *place,
             const struct connection_spec *spec, const struct peer_driver_options *options,
             const char *address)
{
    const struct connection *before = connection_set_find_place(old, place);
    if (!before || !before->node_address || strcmp(before->node_address, address) != 0 ||
        before->spec->driver != spec->driver ||
        before->spec->max_calls != options->driver.max_calls ||
        before->spec->timeout_ms != options->driver.timeout_ms)
        return NULL;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(before->driver);
    bool is_same = same_text(facts->trouble, options->trouble) &&
                   text_map_equal(&facts->topology, options->topology);
    return is_same ? driver_share(before->driver) : NULL;
}

/* ---- one node ---- */

struct node {
    const struct elsewhere *elsewhere;
    const struct member *member;
    struct text_map topology; /* that the node has registered */
    const char *trouble;
    const struct connection_set *old;
    struct connection_set *set;
    struct arena *arena;
};

/* What is known of the drivers of one kind. */
struct kind {
    const struct driver_ops *driver;
    const char *names; /* the attribute that lists its connections */
    const struct driver_facts *like;
};

static struct error *
open_driver(const struct node *node, const struct kind *kind, const struct connection_spec *spec,
            const char *place, struct driver **out)
{
    struct arena *arena = node->arena;
    const struct connections_options *ours = node->elsewhere->options;
    struct peer_driver_options options = {
        .driver = {.connection = spec->name,
                   .max_calls = spec->max_calls,
                   .timeout_ms = spec->timeout_ms,
                   .runtime = ours->runtime,
                   .log = ours->log},
        .node_id = node->member->id,
        .trouble = node->trouble,
        .topology = &node->topology,
        .like = kind->like,
    };
    struct text_map topology = {0};
    struct remote *remote = NULL;        /* one with trouble is not called */
    if (!kind->driver->speaks_our_ids) { /* as it reports it itself */
        text_map_set(&topology, arena, IDS_TOPOLOGY_NODE, node->member->id);
        options.topology = &topology;
    }
    *out = share_driver(node->old, place, spec, &options, node->member->address);
    if (*out)
        return NULL;
    struct error *error = NULL;
    if (!node->trouble)
        error = cluster_remote(node->elsewhere->cluster, node->member, &remote);
    if (!error)
        *out = peer_driver_open(kind->driver, &options, remote);
    return error;
}

static void
add_connection(const struct node *node, const struct kind *kind, const char *name)
{
    struct arena arena;
    struct driver *driver;
    const struct connection *own = connection_set_find(node->set, name);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct connection_spec *spec = copy_spec(own, name, kind->driver, &arena);
    const char *place = arena_print(&arena, "%s@%s", name, node->member->home);
    struct error *error AUTO(error_cleanup) = open_driver(node, kind, spec, place, &driver);
    if (error) {
        log_warn(node->elsewhere->options->log, "a node cannot be used",
                 LOG_TEXT("node", node->member->id), LOG_TEXT("error", error->message));
        arena_clear(&arena);
        return;
    }
    struct connection *connection = connection_new(
        &arena, spec, driver, connection_metrics_counters(node->elsewhere->metrics, name));
    connection->place = place;
    connection->node_address = arena_string(&connection->arena, node->member->address);
    connection->is_lost = node->member->is_expired;
    connection->is_draining = text_map_find(&node->member->attributes, CLUSTER_DRAINING) != NULL;
    node->set->elsewhere[node->set->elsewhere_count++] = connection;
}

/* A name that another kind of driver has here cannot be that of this kind there. */
static bool
may_be_ours(const struct connection_set *set, const struct kind *kind, const char *name)
{
    const struct connection *own = connection_set_find(set, name);
    const struct driver_ops *driver = own ? own->spec->driver : NULL;
    if (driver && !driver->has_homes)
        return false;
    return spec_is_name(name) &&
           (!driver || driver->speaks_our_ids == kind->driver->speaks_our_ids);
}

static const char *
names_of(const struct member *member, const char *attribute)
{
    const char *names = text_map_find(&member->attributes, attribute);
    return names ? names : "";
}

/* One in a million million pairs of ids. */
static bool
has_our_home(const struct node *node)
{
    if (strcmp(node->member->home, node->set->home) != 0)
        return false;
    log_error(node->elsewhere->options->log,
              "another node cannot be told from this one: give one of them another --node-id",
              LOG_TEXT("node", node->member->id));
    return true;
}

static void
add_connections(const struct node *node, const struct kind *kind)
{
    char *rest = arena_string(node->arena, names_of(node->member, kind->names));
    for (char *name; (name = strsep(&rest, ","));)
        if (may_be_ours(node->set, kind, name))
            add_connection(node, kind, name);
}

/* ---- all of them ---- */

static size_t
count_names(const char *names)
{
    size_t count = 1;
    while (*names)
        count += *names++ == ',';
    return count;
}

/* Room for all connections of all members. */
static void
make_room(struct connection_set *set, const struct member_list *members)
{
    size_t most = 1;
    for (size_t i = 0; i < members->count; i++)
        most += count_names(names_of(&members->items[i], CLUSTER_CONNECTIONS)) +
                count_names(names_of(&members->items[i], CLUSTER_OIM_CONNECTIONS));
    set->elsewhere = arena_alloc(&set->arena, most * sizeof(struct connection *));
}

static const char *
print_missing(const struct member_list *members, struct arena *arena)
{
    const char *names = "";
    for (size_t i = 0; i < members->count; i++)
        if (members->items[i].is_missing)
            names = arena_print(arena, "%s%s%s", names, names[0] ? ", " : "", members->items[i].id);
    return names;
}

/* The facts of an engine of this node; NULL: it has none. */
static struct driver_facts *
find_engine(const struct connection_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (connection && connection->spec->driver->speaks_our_ids)
            return driver_facts(connection->driver);
    }
    return NULL;
}

static int
compare_places(const void *a, const void *b)
{
    return strcmp((*(struct connection *const *)a)->place, (*(struct connection *const *)b)->place);
}

void
elsewhere_add(const struct elsewhere *elsewhere, struct connection_set *set,
              const struct connection_set *old)
{
    struct arena arena AUTO(arena_clear);
    struct driver_facts *engine AUTO(driver_facts_cleanup) = find_engine(set);
    struct driver_facts *oim AUTO(driver_facts_cleanup) = oim_peer_facts();
    const struct kind engines = {&driver_peer, CLUSTER_CONNECTIONS, engine};
    const struct kind oims = {&driver_oim_peer, CLUSTER_OIM_CONNECTIONS, oim};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(elsewhere->cluster, &arena);
    make_room(set, &members);
    set->is_waiting = !members.is_known;
    set->missing = print_missing(&members, &set->arena);
    for (size_t i = 0; i < members.count; i++) {
        struct node node = {.elsewhere = elsewhere,
                            .member = &members.items[i],
                            .old = old,
                            .set = set,
                            .arena = &arena};
        if (strcmp(node.member->id, cluster_node_id(elsewhere->cluster)) == 0 ||
            has_our_home(&node))
            continue;
        node.topology = read_topology(node.member, &arena);
        node.trouble = trouble_of(node.member, &arena);
        if (engine)
            add_connections(&node, &engines);
        add_connections(&node, &oims);
    }
    qsort(set->elsewhere, set->elsewhere_count, sizeof *set->elsewhere, compare_places);
}

/* ---- this node ---- */

static bool
is_engine(const struct connection *connection)
{
    return connection->spec->driver->speaks_our_ids;
}

/* An emulation provisions nothing. */
static bool
is_oim(const struct connection *connection)
{
    uint64_t controller = UINT64_C(1)
                          << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE;
    return connection->spec->driver->has_homes && !is_engine(connection) &&
           connection_services(connection) & controller;
}

static const char *
print_names(const struct connection_set *set, bool (*fits)(const struct connection *connection),
            struct arena *arena)
{
    const char *names = "";
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (connection && fits(connection))
            names = arena_print(arena, "%s%s%s", names, names[0] ? "," : "", set->slots[i].name);
    }
    return names;
}

void
elsewhere_tell(const struct elsewhere *elsewhere, const struct connection_set *set)
{
    struct arena arena AUTO(arena_clear);
    struct text_map attributes = {0};
    struct driver_facts *engine AUTO(driver_facts_cleanup) = find_engine(set);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char protocol[PROTOCOL_TEXT_SIZE];
    protocol_print(&protocol_own, protocol);
    text_map_set(&attributes, &arena, CLUSTER_PROTOCOL, protocol);
    text_map_set(&attributes, &arena, CLUSTER_CONNECTIONS, print_names(set, is_engine, &arena));
    const char *oims = print_names(set, is_oim, &arena);
    if (oims[0])
        text_map_set(&attributes, &arena, CLUSTER_OIM_CONNECTIONS, oims);
    if (atomic_load(elsewhere->options->is_draining))
        text_map_set(&attributes, &arena, CLUSTER_DRAINING, "true");
    for (size_t i = 0; engine && i < engine->topology.count; i++)
        text_map_set(&attributes, &arena,
                     arena_print(&arena, CLUSTER_TOPOLOGY "%s", engine->topology.pairs[i].key),
                     engine->topology.pairs[i].value);
    cluster_set_attributes(elsewhere->cluster, &attributes);
}

void
elsewhere_join(const struct elsewhere *elsewhere, const struct connection_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (connection && connection->spec->driver->join)
            connection->spec->driver->join(connection->driver, elsewhere->cluster);
    }
}
