/* SPDX-License-Identifier: Apache-2.0 */
/* What is written into an answer stays when the connection that it came from goes: answers are sent after their call has let go of all connections. */
#include "check.h"
#include "connection_sets.h"
#include "connections/forward/nodes.h"
#include "connections/request/topology.h"
#include "connections/router/router_internal.h"

static struct arena arena;
static struct runtime *runtime;

static struct connection_set *
make_set(const char *text)
{
    struct connection_set *set = connection_set_new(1);
    add_connection(set, silent_driver_new(runtime, "elsewhere", NULL, NULL), "a", text);
    return set;
}

static void
places_of_a_file_are_copied(void)
{
    struct connection_set *set =
        make_set("driver: csi\noptions: {endpoint: 'unix:///x'}\ntopology: [{zone: east}]\n");
    Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;
    struct text_map none = {0};
    topology_translate_out(set->slots[0].connection, &none, false, &volume.base, &arena);
    connection_set_release(set);
    CHECK_NUMBER(volume.n_accessible_topology, 1);
    CHECK_TEXT(volume.accessible_topology[0]->segments[0]->key, "zone");
    CHECK_TEXT(volume.accessible_topology[0]->segments[0]->value, "east");
}

static void
names_of_nodes_in_a_file_are_copied(void)
{
    struct connection_set *set =
        make_set("driver: csi\noptions: {endpoint: 'unix:///x', node-ids: {worker-1: i-01}}\n");
    struct router router = {.node_id = "here"};
    char *node_id = arena_string(&arena, "i-01");
    struct error *error = nodes_translate_out(&router, set->slots[0].connection, &arena, &node_id);
    CHECK(!error);
    connection_set_release(set);
    CHECK_TEXT(node_id, "worker-1");
}

int
main(void)
{
    struct log log = {.fd = 2, .level = LOG_ERROR};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK(!runtime_open(&(struct runtime_options){.log = &log}, &runtime));
    places_of_a_file_are_copied();
    names_of_nodes_in_a_file_are_copied();
    runtime_close(runtime);
    arena_clear(&arena);
    return check_report("connection answers");
}
