/* SPDX-License-Identifier: Apache-2.0 */
/* Topology across connections: see topology.h. */
#include "connections/request/topology.h"

#include <string.h>

#include "message/message_map.h"

static struct text_map
read_segments(const Csi__V1__Topology *topology, struct arena *arena)
{
    return message_map_read(topology->segments, topology->n_segments, arena);
}

Csi__V1__Topology *
topology_make(const struct text_map *segments, struct arena *arena)
{
    if (!segments->count)
        return NULL;
    Csi__V1__Topology *topology = arena_alloc(arena, sizeof *topology);
    csi__v1__topology__init(topology);
    message_map_write(segments, arena, &csi__v1__topology__segments_entry__descriptor,
                      &topology->segments, &topology->n_segments);
    return topology;
}

/* ---- the node ---- */

void
topology_add_node(const struct connection *connection, const struct text_map *keys,
                  struct text_map *segments, struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    for (size_t i = 0; i < keys->count; i++) {
        const char *value = text_map_find(&facts->topology, keys->pairs[i].key);
        if (value)
            text_map_set(segments, arena, keys->pairs[i].value, arena_string(arena, value));
    }
}

/* ---- requirements ---- */

/* Do they have equal values for all common keys? */
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

/* What another node is told by its registration. */
static bool
is_on_node(const struct connection *connection, const struct text_map *wanted)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return agree(&facts->topology, wanted);
}

bool
topology_fits(const struct connection *connection, const Csi__V1__Topology *topology,
              struct arena *arena)
{
    const struct connection_spec *spec = connection->spec;
    if (!topology || (!spec->topology_count && !connection->node_address))
        return true;
    struct text_map wanted = read_segments(topology, arena);
    if (connection->node_address)
        return is_on_node(connection, &wanted);
    for (size_t i = 0; i < spec->topology_count; i++)
        if (agree(&spec->topology[i], &wanted))
            return true;
    return false;
}

/* The topology that the driver sees; NULL: it knows none of the keys. */
static Csi__V1__Topology *
translate_one_in(const struct connection *connection, const struct text_map *keys,
                 Csi__V1__Topology *topology, struct arena *arena)
{
    struct text_map seen = {0};
    if (!keys->count)
        return connection->spec->topology_count ? NULL : topology;
    struct text_map wanted = read_segments(topology, arena);
    for (size_t i = 0; i < keys->count; i++) {
        const char *value = text_map_find(&wanted, keys->pairs[i].value);
        if (value)
            text_map_set(&seen, arena, keys->pairs[i].key, value);
    }
    return topology_make(&seen, arena);
}

/*
 * Keeps the terms that fit, with the driver's keys. A term that uses only keys of other drivers
 * does not fit a driver that has keys, unless the connection's file has a topology.
 */
static size_t
translate_terms(const struct connection *connection, const struct text_map *keys,
                Csi__V1__Topology **terms, size_t count, struct arena *arena, size_t *fitting)
{
    size_t kept = 0;
    *fitting = 0;
    for (size_t i = 0; i < count; i++) {
        if (!topology_fits(connection, terms[i], arena))
            continue;
        Csi__V1__Topology *seen = translate_one_in(connection, keys, terms[i], arena);
        *fitting += seen || connection->spec->topology_count;
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

/* A driver that was never reached may. */
static bool
driver_may_have(const struct connection *connection,
                Csi__V1__PluginCapability__Service__Type service)
{
    return !connection_is_known(connection) || connection_services(connection) >> service & 1;
}

/* The requirement of a request and the service that it needs; NULL: the request has none. */
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

/* A driver without topology is asked for its whole capacity. */
static void
translate_capacity_in(const struct connection *connection, const struct text_map *keys,
                      Csi__V1__GetCapacityRequest *request, struct arena *arena)
{
    static const Csi__V1__PluginCapability__Service__Type service =
        CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS;
    if (!driver_may_have(connection, service))
        request->accessible_topology = NULL;
    if (request->accessible_topology)
        request->accessible_topology =
            translate_one_in(connection, keys, request->accessible_topology, arena);
}

struct error *
topology_translate_in(const struct connection *connection, const struct text_map *keys,
                      ProtobufCMessage *request, struct arena *arena)
{
    Csi__V1__PluginCapability__Service__Type service;
    if (request->descriptor == &csi__v1__get_capacity_request__descriptor)
        translate_capacity_in(connection, keys, (Csi__V1__GetCapacityRequest *)request, arena);
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
        translate_terms(connection, keys, seen->requisite, wanted->n_requisite, arena, &fitting);
    seen->n_preferred =
        translate_terms(connection, keys, seen->preferred, wanted->n_preferred, arena, &preferred);
    bool fits = wanted->n_requisite ? fitting > 0 : wanted->n_preferred == 0 || preferred > 0;
    if (!fits)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "connection \"%s\" serves none of the required topologies",
                         connection->spec->name);
    *requirement = driver_may_have(connection, service) && (seen->n_requisite || seen->n_preferred)
                       ? seen
                       : NULL;
    return NULL;
}

/* ---- answers ---- */

static void
translate_one_out(const struct text_map *keys, Csi__V1__Topology *topology)
{
    for (size_t i = 0; i < topology->n_segments; i++) {
        Csi__V1__Topology__SegmentsEntry *segment = topology->segments[i];
        const char *segments = text_map_find(keys, segment->key);
        if (segments)
            segment->key = (char *)segments;
    }
}

/* The connection may be gone when the answer is sent, so the texts are copied. */
static Csi__V1__Topology *
copy_topology(const struct text_map *segments, struct arena *arena)
{
    struct text_map copy = text_map_copy(segments, arena);
    return topology_make(&copy, arena);
}

/* The topologies of one volume or snapshot; where the driver reports none, those of the file. */
static void
translate_terms_out(const struct connection *connection, const struct text_map *keys,
                    Csi__V1__Topology ***terms, size_t *count, struct arena *arena)
{
    const struct connection_spec *spec = connection->spec;
    for (size_t i = 0; i < *count; i++)
        translate_one_out(keys, (*terms)[i]);
    if (*count || !spec->topology_count)
        return;
    *terms = arena_alloc(arena, spec->topology_count * sizeof(void *));
    for (size_t i = 0; i < spec->topology_count; i++)
        (*terms)[(*count)++] = copy_topology(&spec->topology[i], arena);
}

void
topology_translate_out(const struct connection *connection, const struct text_map *keys,
                       bool advertises_csi_1_13, ProtobufCMessage *owner, struct arena *arena)
{
    if (owner->descriptor == &csi__v1__volume__descriptor) {
        Csi__V1__Volume *volume = (Csi__V1__Volume *)owner;
        translate_terms_out(connection, keys, &volume->accessible_topology,
                            &volume->n_accessible_topology, arena);
    } else if (owner->descriptor == &csi__v1__snapshot__descriptor) {
        Csi__V1__Snapshot *snapshot = (Csi__V1__Snapshot *)owner;
        if (advertises_csi_1_13)
            translate_terms_out(connection, keys, &snapshot->accessible_topology,
                                &snapshot->n_accessible_topology, arena);
        else
            snapshot->n_accessible_topology = 0;
    }
}
