/* SPDX-License-Identifier: Apache-2.0 */
/* Topology across connections: what a node tells, what a driver gets to see, what is judged for it. */
#include "connections/request/csi_fields.h"
#include "connections/request/topology.h"

#include "check.h"
#include "connection_sets.h"
#include "message/message_map.h"

#define FILE_OF(more) "driver: csi\noptions: {endpoint: 'unix:///x'}\n" more

static struct arena arena;
static struct runtime *runtime;

static Csi__V1__Topology *
place(const char *key, const char *value, const char *key2, const char *value2)
{
    struct text_map map = {0};
    Csi__V1__Topology *topology = arena_alloc(&arena, sizeof *topology);
    csi__v1__topology__init(topology);
    text_map_set(&map, &arena, key, value);
    if (key2)
        text_map_set(&map, &arena, key2, value2);
    message_map_write(&map, &arena, &csi__v1__topology__segments_entry__descriptor,
                      &topology->segments, &topology->n_segments);
    return topology;
}

/* "key=value key=value" */
static const char *
text_of(const Csi__V1__Topology *topology)
{
    const char *text = "";
    for (size_t i = 0; topology && i < topology->n_segments; i++)
        text = arena_print(&arena, "%s%s%s=%s", text, i ? " " : "", topology->segments[i]->key,
                           topology->segments[i]->value);
    return text;
}

struct fixture {
    struct connection_set *set;
    struct connection *a, *b, *c;
    struct text_map keys_of_a, keys_of_b, none;
};

/* Two drivers with the same key and other values, and one whose file tells where it is. */
static void
make_fixture(struct fixture *f)
{
    f->set = connection_set_new(3);
    f->a = add_connection(f->set, silent_driver_new(runtime, "1", "x.io/node", "one"), "a",
                          FILE_OF(""));
    f->b = add_connection(f->set, silent_driver_new(runtime, "2", "x.io/node", "two"), "b",
                          FILE_OF(""));
    f->c = add_connection(f->set, silent_driver_new(runtime, "3", NULL, NULL), "c",
                          FILE_OF("topology: [{zone: east}, {zone: west}]\n"));
    f->keys_of_a = f->keys_of_b = f->none = (struct text_map){0};
    text_map_set(&f->keys_of_a, &arena, "x.io/node", "x.io/node");
    text_map_set(&f->keys_of_b, &arena, "x.io/node", "b.x.io/node");
}

static void
test_node(const struct fixture *f)
{
    struct text_map told = {0};
    CHECK(!topology_make(&told, &arena));
    topology_add_node(f->a, &f->keys_of_a, &told, &arena);
    topology_add_node(f->b, &f->keys_of_b, &told, &arena);
    topology_add_node(f->c, &f->none, &told, &arena);
    CHECK_TEXT(text_of(topology_make(&told, &arena)), "b.x.io/node=two x.io/node=one");
}

static struct error *
translate(struct connection *connection, const struct text_map *keys, Csi__V1__Topology **requisite,
          size_t count, Csi__V1__TopologyRequirement **out)
{
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__TopologyRequirement wanted = CSI__V1__TOPOLOGY_REQUIREMENT__INIT;
    wanted.requisite = requisite;
    wanted.n_requisite = count;
    request.accessibility_requirements = &wanted;
    struct error *error = topology_translate_in(connection, keys, &request.base, &arena);
    *out = error ? NULL : request.accessibility_requirements;
    return error;
}

static void
test_requirements(const struct fixture *f)
{
    Csi__V1__TopologyRequirement *seen;
    Csi__V1__Topology *node = place("x.io/node", "one", "b.x.io/node", "two");
    CHECK(!translate(f->a, &f->keys_of_a, &node, 1, &seen));
    CHECK(seen && seen->n_requisite == 1);
    CHECK_TEXT(text_of(seen->requisite[0]), "x.io/node=one");
    CHECK(!translate(f->b, &f->keys_of_b, &node, 1, &seen));
    CHECK_TEXT(text_of(seen->requisite[0]), "x.io/node=two");
    /* One that the driver knows nothing of is not shown to it. */
    CHECK(!translate(f->c, &f->none, &node, 1, &seen));
    CHECK(!seen);
    /* Any of the requisite ones is enough. */
    Csi__V1__Topology *zones[] = {place("zone", "north", NULL, NULL),
                                  place("zone", "west", NULL, NULL)};
    CHECK(!translate(f->c, &f->none, zones, 2, &seen));
    struct error *error AUTO(error_cleanup) = translate(f->c, &f->none, zones, 1, &seen);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    CHECK(topology_fits(f->c, NULL, &arena));
    CHECK(topology_fits(f->c, zones[1], &arena));
    CHECK(!topology_fits(f->c, zones[0], &arena));
}

/* A driver whose keys no node has told yet sees all of it: whoever drops a place may put the volume into another. */
static void
test_unknown_keys(const struct fixture *f)
{
    Csi__V1__TopologyRequirement *seen;
    Csi__V1__Topology *node = place("x.io/node", "one", "b.x.io/node", "two");
    CHECK(!translate(f->a, &f->none, &node, 1, &seen));
    CHECK(seen && seen->n_requisite == 1);
    CHECK_TEXT(text_of(seen->requisite[0]), "b.x.io/node=two x.io/node=one");
    Csi__V1__GetCapacityRequest request = CSI__V1__GET_CAPACITY_REQUEST__INIT;
    request.accessible_topology = node;
    CHECK(!topology_translate_in(f->b, &f->keys_of_b, &request.base, &arena));
    CHECK_TEXT(text_of(request.accessible_topology), "x.io/node=two");
    request.accessible_topology = node;
    CHECK(!topology_translate_in(f->b, &f->none, &request.base, &arena));
    CHECK_TEXT(text_of(request.accessible_topology), "b.x.io/node=two x.io/node=one");
}

struct answer {
    const struct connection *connection;
    const struct text_map *keys;
    bool advertises_csi_1_13;
};

static struct error *
translate_owner(void *context, ProtobufCMessage *owner)
{
    const struct answer *answer = context;
    topology_translate_out(answer->connection, answer->keys, answer->advertises_csi_1_13, owner,
                           &arena);
    return NULL;
}

static void
translate_answer(const struct connection *connection, const struct text_map *keys,
                 bool advertises_csi_1_13, ProtobufCMessage *message)
{
    struct answer answer = {connection, keys, advertises_csi_1_13};
    CHECK(!csi_fields_walk(message, &(struct csi_visitor){&answer, NULL, translate_owner}));
}

static void
test_answers(const struct fixture *f)
{
    Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;
    Csi__V1__Topology *is[] = {place("x.io/node", "two", NULL, NULL)};
    volume.accessible_topology = is;
    volume.n_accessible_topology = 1;
    translate_answer(f->b, &f->keys_of_b, false, &volume.base);
    CHECK_TEXT(text_of(volume.accessible_topology[0]), "b.x.io/node=two");
    Csi__V1__Volume bare = CSI__V1__VOLUME__INIT;
    translate_answer(f->c, &f->none, false, &bare.base);
    CHECK_NUMBER(bare.n_accessible_topology, 2);
    CHECK_TEXT(text_of(bare.accessible_topology[1]), "zone=west");
}

/* Of snapshots, deep in an answer too; to an orchestrator that knows of it. */
static void
test_snapshots(const struct fixture *f)
{
    Csi__V1__Snapshot told = CSI__V1__SNAPSHOT__INIT, bare = CSI__V1__SNAPSHOT__INIT;
    Csi__V1__Snapshot *snapshots[] = {&told, &bare};
    Csi__V1__VolumeGroupSnapshot group = CSI__V1__VOLUME_GROUP_SNAPSHOT__INIT;
    Csi__V1__GetVolumeGroupSnapshotResponse answer =
        CSI__V1__GET_VOLUME_GROUP_SNAPSHOT_RESPONSE__INIT;
    Csi__V1__Topology *is[] = {place("x.io/node", "two", NULL, NULL)};
    told.accessible_topology = is;
    told.n_accessible_topology = 1;
    group.snapshots = snapshots;
    group.n_snapshots = COUNT_OF(snapshots);
    answer.group_snapshot = &group;
    translate_answer(f->b, &f->keys_of_b, true, &answer.base);
    CHECK_TEXT(text_of(told.accessible_topology[0]), "b.x.io/node=two");
    CHECK_NUMBER(bare.n_accessible_topology, 0);
    translate_answer(f->c, &f->none, true, &bare.base);
    CHECK_NUMBER(bare.n_accessible_topology, 2);
    translate_answer(f->b, &f->keys_of_b, false, &answer.base);
    CHECK_NUMBER(told.n_accessible_topology + bare.n_accessible_topology, 0);
}

int
main(void)
{
    struct log log = {.fd = 2, .level = LOG_ERROR};
    struct fixture fixture;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK(!runtime_open(&(struct runtime_options){.log = &log}, &runtime));
    make_fixture(&fixture);
    test_node(&fixture);
    test_requirements(&fixture);
    test_unknown_keys(&fixture);
    test_answers(&fixture);
    test_snapshots(&fixture);
    connection_set_release(fixture.set);
    runtime_close(runtime);
    arena_clear(&arena);
    return check_report("connection topology");
}
