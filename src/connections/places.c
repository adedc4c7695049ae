/* SPDX-License-Identifier: Apache-2.0 */
/* Topology across connections: see places.h. */
#include "connections/places.h"

#include <string.h>

#include "rpc/message_field.h"
#include "rpc/message_map.h"

static struct text_map
read_segments(const Csi__V1__Topology *topology, struct arena *arena)
{
    return message_map_read(topology->segments, topology->n_segments, arena);
}

static Csi__V1__Topology *
make_topology(const struct text_map *segments, struct arena *arena)
{
    Csi__V1__Topology *topology = arena_alloc(arena, sizeof *topology);
    csi__v1__topology__init(topology);
    message_map_write(segments, arena, &csi__v1__topology__segments_entry__descriptor,
                      &topology->segments, &topology->n_segments);
    return topology;
}

/* ---- keys ---- */

/* Does a connection before this one give the key another value on this node? Then ours is told with our name before it. */
static bool
is_taken(const struct connection_set *set, const struct connection *connection, const char *key,
         const char *value)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *other = set->slots[i].connection;
        if (!other)
            continue;
        if (strcmp(other->spec->name, connection->spec->name) == 0)
            return false;
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(other->driver);
        const char *others = text_map_find(&facts->topology, key);
        if (others)
            return strcmp(others, value) != 0;
    }
    return false;
}

static const char *
key_for_all(const struct connection_set *set, const struct connection *connection, const char *key,
            struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    const char *own = text_map_find(&facts->topology, key);
    if (own && is_taken(set, connection, key, own))
        return arena_print(arena, "%s.%s", connection->spec->name, key);
    return key;
}

/* ---- the node ---- */

Csi__V1__Topology *
places_of_node(const struct connection_set *set, struct arena *arena)
{
    struct text_map all = {0};
    for (size_t i = 0; i < set->count; i++) {
        const struct connection *connection = set->slots[i].connection;
        if (!connection)
            continue;
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
        for (size_t k = 0; k < facts->topology.count; k++) {
            const struct text_pair *pair = &facts->topology.pairs[k];
            text_map_set(&all, arena,
                         arena_string(arena, key_for_all(set, connection, pair->key, arena)),
                         arena_string(arena, pair->value));
        }
    }
    return all.count ? make_topology(&all, arena) : NULL;
}

/* ---- requirements ---- */

/* Nothing that the two have in common differs. */
static bool
agree(const struct text_map *a, const struct text_map *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const char *other = text_map_find(b, a->pairs[i].key);
        if (other && strcmp(other, a->pairs[i].value) != 0)
            return false;
    }
    return true;
}

bool
places_fit(const struct connection *connection, const Csi__V1__Topology *topology,
           struct arena *arena)
{
    const struct connection_spec *spec = connection->spec;
    if (!topology || !spec->topology_count)
        return true;
    struct text_map wanted = read_segments(topology, arena);
    for (size_t i = 0; i < spec->topology_count; i++)
        if (agree(&spec->topology[i], &wanted))
            return true;
    return false;
}

Csi__V1__Topology *
places_translate_one_in(const struct connection_set *set, const struct connection *connection,
                        const Csi__V1__Topology *topology, struct arena *arena)
{
    struct text_map seen = {0};
    struct text_map wanted = read_segments(topology, arena);
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    for (size_t i = 0; i < facts->topology.count; i++) {
        const char *key = facts->topology.pairs[i].key;
        const char *value = text_map_find(&wanted, key_for_all(set, connection, key, arena));
        if (value)
            text_map_set(&seen, arena, arena_string(arena, key), value);
    }
    return seen.count ? make_topology(&seen, arena) : NULL;
}

/*
 * Whether a term is about the connection at all. Where a driver tells where its volumes are, or its file does, a place that is named by keys of
 * others alone is none of theirs.
 */
static bool
concerns(const struct connection *connection, const Csi__V1__Topology *seen)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return seen || !facts->topology.count || connection->spec->topology_count;
}

/* The terms that fit, as the driver sees them. */
static size_t
translate_terms(const struct connection_set *set, const struct connection *connection,
                Csi__V1__Topology **terms, size_t count, struct arena *arena, size_t *fitting)
{
    size_t kept = 0;
    *fitting = 0;
    for (size_t i = 0; i < count; i++) {
        if (!places_fit(connection, terms[i], arena))
            continue;
        Csi__V1__Topology *seen = places_translate_one_in(set, connection, terms[i], arena);
        *fitting += concerns(connection, seen);
        if (seen)
            terms[kept++] = seen;
    }
    return kept;
}

static Csi__V1__Topology **
copy_terms(Csi__V1__Topology *const *terms, size_t count, struct arena *arena)
{
    return (Csi__V1__Topology **)(void *)arena_copy(arena, terms, count * sizeof *terms);
}

static bool
driver_has(const struct connection *connection, Csi__V1__PluginCapability__Service__Type service)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return facts->services >> service & 1;
}

/* The requirement of a request, and the service that a driver has if it can do something with it; NULL: the request is not about places. */
static Csi__V1__TopologyRequirement **
find_requirement(ProtobufCMessage *request, Csi__V1__PluginCapability__Service__Type *service)
{
    if (request->descriptor == &csi__v1__create_volume_request__descriptor) {
        *service = CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS;
        return &((Csi__V1__CreateVolumeRequest *)request)->accessibility_requirements;
    }
    if (request->descriptor == &csi__v1__create_snapshot_request__descriptor) {
        *service = CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__SNAPSHOT_ACCESSIBILITY_CONSTRAINTS;
        return &((Csi__V1__CreateSnapshotRequest *)request)->accessibility_requirements;
    }
    return NULL;
}

struct error *
places_translate_in(const struct connection_set *set, const struct connection *connection,
                    ProtobufCMessage *request, struct arena *arena)
{
    Csi__V1__PluginCapability__Service__Type service;
    Csi__V1__TopologyRequirement **requirement = find_requirement(request, &service);
    if (!requirement || !*requirement)
        return NULL;
    const Csi__V1__TopologyRequirement *wanted = *requirement;
    size_t fitting, preferred;
    Csi__V1__TopologyRequirement *seen = arena_alloc(arena, sizeof *seen);
    *seen = *wanted;
    seen->requisite = copy_terms(wanted->requisite, wanted->n_requisite, arena);
    seen->preferred = copy_terms(wanted->preferred, wanted->n_preferred, arena);
    seen->n_requisite =
        translate_terms(set, connection, seen->requisite, wanted->n_requisite, arena, &fitting);
    seen->n_preferred =
        translate_terms(set, connection, seen->preferred, wanted->n_preferred, arena, &preferred);
    bool fits = wanted->n_requisite ? fitting > 0 : wanted->n_preferred == 0 || preferred > 0;
    if (!fits)
        return error_new(
            CODE_RESOURCE_EXHAUSTED,
            "what connection \"%s\" keeps can be in none of the places that are wanted",
            connection->spec->name);
    *requirement =
        driver_has(connection, service) && (seen->n_requisite || seen->n_preferred) ? seen : NULL;
    return NULL;
}

/* ---- answers ---- */

static void
translate_one_out(const struct connection_set *set, const struct connection *connection,
                  Csi__V1__Topology *topology, struct arena *arena)
{
    for (size_t i = 0; i < topology->n_segments; i++) {
        Csi__V1__Topology__SegmentsEntry *segment = topology->segments[i];
        segment->key = (char *)key_for_all(set, connection, segment->key, arena);
    }
}

/* The answer is sent when the connection may be gone. */
static Csi__V1__Topology *
copy_place(const struct text_map *place, struct arena *arena)
{
    struct text_map copy = {0};
    for (size_t i = 0; i < place->count; i++)
        text_map_set(&copy, arena, arena_string(arena, place->pairs[i].key),
                     arena_string(arena, place->pairs[i].value));
    return make_topology(&copy, arena);
}

/* The places of one volume. */
struct places {
    Csi__V1__Topology ***terms;
    size_t *count;
};

static void
translate_places_out(const struct connection_set *set, const struct connection *connection,
                     struct places places, struct arena *arena)
{
    const struct connection_spec *spec = connection->spec;
    for (size_t i = 0; i < *places.count; i++)
        translate_one_out(set, connection, (*places.terms)[i], arena);
    if (*places.count || !spec->topology_count)
        return;
    *places.terms = arena_alloc(arena, spec->topology_count * sizeof(void *));
    for (size_t i = 0; i < spec->topology_count; i++)
        (*places.terms)[(*places.count)++] = copy_place(&spec->topology[i], arena);
}

struct walk {
    const struct connection_set *set;
    const struct connection *connection;
    bool tells_1_13;
    struct arena *arena;
};

static void
translate_snapshot_out(const struct walk *walk, Csi__V1__Snapshot *snapshot)
{
    struct places places = {&snapshot->accessible_topology, &snapshot->n_accessible_topology};
    if (walk->tells_1_13)
        translate_places_out(walk->set, walk->connection, places, walk->arena);
    else
        *places.count = 0;
}

static void walk_message(const struct walk *walk, ProtobufCMessage *message);

static void
walk_field(const struct walk *walk, ProtobufCMessage *message,
           const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || !message_field_is_present(message, field))
        return;
    void *value = message_field_value(message, field);
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    ProtobufCMessage **members = is_repeated ? *(ProtobufCMessage ***)value : value;
    size_t count = is_repeated ? *(size_t *)message_field_quantifier(message, field) : 1;
    for (size_t i = 0; i < count; i++)
        walk_message(walk, members[i]);
}

static void
walk_message(const struct walk *walk, ProtobufCMessage *message)
{
    if (message->descriptor == &csi__v1__snapshot__descriptor) {
        translate_snapshot_out(walk, (Csi__V1__Snapshot *)message);
    } else if (message->descriptor == &csi__v1__volume__descriptor) {
        Csi__V1__Volume *volume = (Csi__V1__Volume *)message;
        struct places places = {&volume->accessible_topology, &volume->n_accessible_topology};
        translate_places_out(walk->set, walk->connection, places, walk->arena);
    } else {
        for (unsigned i = 0; i < message->descriptor->n_fields; i++)
            walk_field(walk, message, &message->descriptor->fields[i]);
    }
}

void
places_translate_out(const struct connection_set *set, const struct connection *connection,
                     bool tells_1_13, ProtobufCMessage *answer, struct arena *arena)
{
    struct walk walk = {set, connection, tells_1_13, arena};
    walk_message(&walk, answer);
}
