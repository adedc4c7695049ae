/* SPDX-License-Identifier: Apache-2.0 */
/* Driver `csi` before a child that does as it is told: facts, calls and streams. */
#include "driver_csi_ends.h"

/* ---- facts ---- */

static void
facts_are_read_when_it_is_reached(void)
{
    struct child child;
    struct front front;
    open_both(&front, &child);
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK(facts->is_known);
    CHECK(!facts->trouble);
    CHECK(facts->since_ms > 0);
    CHECK_TEXT(facts->plugin_name, "child.example.com");
    CHECK_TEXT(facts->plugin_version, "1.0");
    CHECK_NUMBER(facts->services,
                 1 << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE);
    CHECK_NUMBER(facts->expansion, 1 << CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE);
    CHECK_NUMBER(facts->controller,
                 1 << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_VOLUME);
    CHECK_NUMBER(facts->node,
                 1 << CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME);
    CHECK_NUMBER(facts->group, 0);
    CHECK_TEXT(facts->node_id, "child-node");
    CHECK_NUMBER(facts->max_volumes_per_node, 12);
    CHECK_TEXT(text_map_find(&facts->topology, "example.com/rack"), "r1");
    driver_facts_release(facts);
    close_both(&front, &child);
}

static void
a_child_without_node_service_is_a_good_one(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_CONTROLLER);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = quick_settings(&front, &child)});
    CHECK(wait_for_facts(front.driver, true, NULL));
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK_TEXT(facts->node_id, NULL);
    CHECK_NUMBER(facts->node, 0);
    driver_facts_release(facts);
    close_both(&front, &child);
}

/* As democratic-csi's node mode: Identity says CONTROLLER_SERVICE, and there is no Controller service. */
static void
a_child_without_controller_service_is_a_good_one(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_NODE);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = quick_settings(&front, &child)});
    CHECK(wait_for_facts(front.driver, true, NULL));
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK(facts->is_known);
    CHECK_NUMBER(facts->services, 0);
    CHECK_NUMBER(facts->controller, 0);
    CHECK_NUMBER(facts->node,
                 1 << CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME);
    CHECK_TEXT(facts->node_id, "child-node");
    driver_facts_release(facts);
    close_both(&front, &child);
}

static void
a_child_that_is_not_ready_is_told_with_its_own_words(void)
{
    struct child child;
    struct front front;
    open_both(&front, &child);
    atomic_store(&child.is_unready, true);
    CHECK(wait_for_facts(front.driver, false, NULL));
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK_TEXT(facts->trouble, "it reports that it is not ready");
    CHECK_TEXT(facts->node_id, "child-node"); /* what it said before stays */
    driver_facts_release(facts);
    atomic_store(&child.is_unready, false);
    CHECK(wait_for_facts(front.driver, true, NULL));

    atomic_store(&child.refusal, CODE_FAILED_PRECONDITION);
    CHECK(wait_for_facts(front.driver, false, NULL));
    facts = driver_facts(front.driver);
    CHECK_TEXT(facts->trouble, "the child says no");
    driver_facts_release(facts);
    CHECK_CODE(create(&front, "a", NULL, NULL), CODE_FAILED_PRECONDITION); /* it is reachable */
    close_both(&front, &child);
}

static void
a_child_that_comes_back_is_read_again(void)
{
    struct child child;
    struct front front;
    open_both(&front, &child);
    int reads = atomic_load(&child.reads);
    server_free(child.ends.server);
    CHECK(wait_for_facts(front.driver, false, NULL));
    CHECK_CODE(create(&front, "a", NULL, NULL), CODE_UNAVAILABLE);
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK(facts->is_known);
    CHECK_TEXT(facts->plugin_name, "child.example.com");
    driver_facts_release(facts);
    atomic_store(&child.version, 2);
    child_serve(&child, CHILD_BOTH);
    CHECK(wait_for_facts(front.driver, true, "1.2"));
    CHECK_NUMBER(atomic_load(&child.reads), reads + 1);
    CHECK_CODE(create(&front, "a", NULL, NULL), CODE_OK);
    close_both(&front, &child);
}

static void
while_it_is_up_it_is_only_probed(void)
{
    struct child child;
    struct front front;
    open_both(&front, &child);
    int probes = atomic_load(&child.probes);
    uint64_t start = timers_now();
    while (atomic_load(&child.probes) < probes + 3 && ms_since(start) < PATIENCE_MS)
        sleep_ms(2);
    CHECK(atomic_load(&child.probes) >= probes + 3);
    CHECK_NUMBER(atomic_load(&child.reads), 1);
    close_both(&front, &child);
}

static void
a_child_that_is_not_there_is_told(void)
{
    struct front front;
    struct child nobody = {0};
    ends_choose_address(nobody.ends.address);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = quick_settings(&front, &nobody)});
    CHECK(wait_for_trouble(front.driver, nobody.ends.address));
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK(!facts->is_known && !facts->is_ready);
    driver_facts_release(facts);
    front_close(&front);
}

/* ---- calls ---- */

static void
a_call_passes_with_its_answer(void)
{
    struct child child;
    struct front front;
    char id[64] = "";
    open_both(&front, &child);
    CHECK_CODE(create(&front, "one", NULL, id), CODE_OK);
    CHECK_TEXT(id, "id-of-one");
    CHECK_TEXT(child.via, "process-1 ");
    close_both(&front, &child);
}

/* So that a process finds itself in a chain of any length. */
static void
the_way_of_a_call_is_passed_on(void)
{
    struct child child;
    struct front front;
    struct metadata metadata = {0};
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    open_both(&front, &child);
    succeed(metadata_add(&metadata, &arena, DRIVER_VIA, "before-1", 8));
    succeed(metadata_add(&metadata, &arena, "other", "x", 1));
    succeed(metadata_add(&metadata, &arena, DRIVER_VIA, "before-2", 8));
    CHECK_CODE(create(&front, "one", &(struct call_options){.metadata = &metadata}, NULL), CODE_OK);
    CHECK_TEXT(child.via, "before-1 before-2 process-1 ");
    close_both(&front, &child);
}

static void
an_error_of_the_child_passes_as_it_is(void)
{
    const enum code codes[] = {CODE_UNIMPLEMENTED, CODE_UNAVAILABLE, CODE_ABORTED};
    struct child child;
    struct front front;
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = calm_settings(&front, &child)});
    CHECK(wait_for_facts(front.driver, true, NULL));
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        atomic_store(&child.refusal, codes[i]);
        /* More often than the breaker stands from the wire. */
        for (unsigned n = 0; n < 7; n++) {
            struct error *error = create(&front, "one", NULL, NULL);
            CHECK_TEXT(error ? error->message : NULL, "the child says no");
            CHECK_CODE(error, codes[i]);
        }
    }
    close_both(&front, &child);
}

static struct error *
ask_node(struct front *front)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Csi__V1__NodeGetInfoRequest request = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
    Csi__V1__NodeGetInfoResponse *reply;
    struct error *error = channel_call(front->ends.channel, CSI_V1_NODE_NODE_GET_INFO,
                                       &request.base, NULL, &arena, &reply);
    if (!error)
        CHECK_TEXT(reply->node_id, "child-node");
    return error;
}

/* Controller and node each at an endpoint of their own. */
static void
open_with_node(struct front *front, struct child *controller, struct child *node)
{
    child_open(controller, CHILD_CONTROLLER);
    child_open(node, CHILD_NODE);
    front_prepare(front);
    const struct setting *settings =
        make_settings(&front->arena, "endpoint", controller->ends.address, "node-endpoint",
                      node->ends.address, "probe-interval", "50ms", NULL);
    front_open(front, &(struct front_setup){.settings = settings});
    CHECK(wait_for_facts(front->driver, true, NULL));
}

static void
node_calls_go_to_the_node_endpoint(void)
{
    struct child controller, node;
    struct front front;
    open_with_node(&front, &controller, &node);
    CHECK_NUMBER(atomic_load(&node.reads), 0); /* the controller tells who it is */
    CHECK(atomic_load(&node.probes) > 0);
    struct driver_facts *facts = driver_facts(front.driver);
    CHECK_TEXT(facts->node_id, "child-node");
    driver_facts_release(facts);

    CHECK_CODE(ask_node(&front), CODE_OK);
    CHECK_CODE(create(&front, "one", NULL, NULL), CODE_OK);

    /* One of them gone leaves the other in use. */
    server_free(node.ends.server);
    CHECK(wait_for_facts(front.driver, false, NULL));
    facts = driver_facts(front.driver);
    CHECK(strstr(facts->trouble, "node-endpoint: ") == facts->trouble);
    driver_facts_release(facts);
    for (unsigned n = 0; n < 7; n++)
        CHECK_CODE(ask_node(&front), CODE_UNAVAILABLE);
    CHECK_CODE(create(&front, "one", NULL, NULL), CODE_OK);
    child_serve(&node, CHILD_NODE);
    CHECK(wait_for_facts(front.driver, true, NULL));
    front_close(&front);
    child_close(&controller);
    child_close(&node);
}

static void
a_node_that_comes_back_is_used_though_the_controller_is_away(void)
{
    struct child controller, node;
    struct front front;
    open_with_node(&front, &controller, &node);
    server_free(controller.ends.server);
    server_free(node.ends.server);
    CHECK(wait_for_facts(front.driver, false, NULL));
    for (unsigned n = 0; n < 7; n++) /* its breaker opens */
        CHECK_CODE(ask_node(&front), CODE_UNAVAILABLE);
    child_serve(&node, CHILD_NODE);
    uint64_t start = timers_now();
    enum code code;
    while ((code = take_code(ask_node(&front))) && ms_since(start) < PATIENCE_MS)
        sleep_ms(5);
    CHECK_NUMBER(code, CODE_OK);
    child_serve(&controller, CHILD_CONTROLLER);
    front_close(&front);
    child_close(&controller);
    child_close(&node);
}

static void
node_ids_are_found(void)
{
    struct child nobody = {0};
    struct front front;
    ends_choose_address(nobody.ends.address);
    front_prepare(&front);
    const struct setting *ids = make_settings(&front.arena, "worker-1", "i-0123", NULL);
    const struct setting *settings =
        add_setting(&front.arena, calm_settings(&front, &nobody), "node-ids", ids);
    front_open(&front, &(struct front_setup){.settings = settings});
    front_close(&front);
}

/* ---- streams ---- */

static struct error *
read_stream(struct front *front, int64_t *sum)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Csi__V1__GetMetadataAllocatedRequest request = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    struct client_call *call;
    request.starting_offset = 10;
    succeed(client_call_open(front->ends.channel, CSI_V1_SNAPSHOT_METADATA_GET_METADATA_ALLOCATED,
                             NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    Csi__V1__GetMetadataAllocatedResponse *message;
    for (*sum = 0;; *sum += message->volume_capacity_bytes) {
        succeed(client_call_recv(call, &arena, &message));
        if (!message)
            break;
    }
    struct error *error = client_call_finish(call);
    client_call_free(call);
    return error;
}

static void
a_stream_passes_and_ends_with_the_childs_status(void)
{
    struct child child;
    struct front front;
    int64_t sum;
    open_both(&front, &child);
    CHECK_CODE(read_stream(&front, &sum), CODE_OK);
    CHECK_NUMBER(sum, 10 + 11 + 12);
    atomic_store(&child.refusal, CODE_DATA_LOSS);
    CHECK_CODE(read_stream(&front, &sum), CODE_DATA_LOSS);
    CHECK_NUMBER(sum, 10 + 11 + 12);
    close_both(&front, &child);
}

/* ---- relays ---- */

static void
a_relayed_call_passes_with_its_answer(void)
{
    struct child child;
    struct front front;
    open_both(&front, &child);
    CHECK_CODE(remove_volume(&front, NULL), CODE_OK);
    CHECK_NUMBER(atomic_load(&front.relayed), 1);
    atomic_store(&child.refusal, CODE_FAILED_PRECONDITION);
    struct error *error = remove_volume(&front, NULL);
    CHECK_TEXT(error ? error->message : NULL, "seen: the child says no");
    CHECK_CODE(error, CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(atomic_load(&front.relayed), 2);
    close_both(&front, &child);
}

static void
relayed_calls_are_bounded_too(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = calm_settings(&front, &child),
                                             .max_calls = 1,
                                             .timeout_ms = 200});
    CHECK(wait_for_facts(front.driver, true, NULL));
    atomic_store(&child.hangs, true);
    for (unsigned n = 0; n < 5; n++) /* a place is free again after each */
        CHECK_CODE(remove_volume(&front, NULL), CODE_DEADLINE_EXCEEDED);
    CHECK_NUMBER(atomic_load(&front.relayed), 5);
    atomic_store(&child.hangs, false);
    close_both(&front, &child);
}

/* The call that is under way holds the driver, and lets go of it on the loop. */
static void
a_driver_that_is_let_go_ends_its_relayed_calls_first(void)
{
    struct child child;
    struct front front;
    struct client_call *call;
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    open_both(&front, &child);
    atomic_store(&child.hangs, true);
    succeed(client_call_open(front.ends.channel, CSI_V1_CONTROLLER_DELETE_VOLUME, NULL, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    CHECK(gate_wait(&child.entered, 1));
    driver_release(STEAL(front.driver));
    CHECK_NUMBER(atomic_load(&front.relayed), 0);
    gate_pass(&child.may_go);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    CHECK_NUMBER(atomic_load(&front.relayed), 1);
    client_call_free(call);
    close_both(&front, &child);
}

/* ---- sharing ---- */

static void
who_lets_go_last_closes_it(void)
{
    struct child child;
    struct front front;
    open_both(&front, &child);
    struct driver *held = driver_share(front.driver);
    driver_release(front.driver);
    int probes = atomic_load(&child.probes);
    uint64_t start = timers_now();
    while (atomic_load(&child.probes) == probes && ms_since(start) < PATIENCE_MS)
        sleep_ms(2);
    CHECK(atomic_load(&child.probes) > probes); /* it lives */
    front.driver = held;
    close_both(&front, &child);
}

static void
all_names_are_told(void)
{
    for (size_t i = 0; all_drivers[i]; i++) {
        CHECK(strstr(driver_names(), all_drivers[i]->name));
        CHECK(driver_find(all_drivers[i]->name) == all_drivers[i]);
    }
    CHECK(!driver_find("nothing"));
}

int
main(void)
{
    facts_are_read_when_it_is_reached();
    a_child_without_node_service_is_a_good_one();
    a_child_without_controller_service_is_a_good_one();
    a_child_that_is_not_ready_is_told_with_its_own_words();
    a_child_that_comes_back_is_read_again();
    while_it_is_up_it_is_only_probed();
    a_child_that_is_not_there_is_told();
    a_call_passes_with_its_answer();
    the_way_of_a_call_is_passed_on();
    an_error_of_the_child_passes_as_it_is();
    node_calls_go_to_the_node_endpoint();
    a_node_that_comes_back_is_used_though_the_controller_is_away();
    node_ids_are_found();
    a_stream_passes_and_ends_with_the_childs_status();
    a_relayed_call_passes_with_its_answer();
    relayed_calls_are_bounded_too();
    a_driver_that_is_let_go_ends_its_relayed_calls_first();
    who_lets_go_last_closes_it();
    all_names_are_told();
    return check_report("driver_csi");
}
