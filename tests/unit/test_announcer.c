/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of a controller or a node in the registry: told at once, renewed, told again to a registry that comes back, in whichever way that one knows. */
#include "registry/client/announcer.h"

#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "rpc_ends.h"

/* ---- a registry that notes what it is told ---- */

struct notebook {
    struct gate told;          /* how often */
    _Atomic enum code refusal; /* CODE_OK: none */
    char last[96];             /* written before `told` is passed */
    uint64_t at[32];
};

static struct error *
note(struct call *call, const char *method, const char *id, const char *address, int64_t life_ms)
{
    struct notebook *notebook = call_context(call);
    unsigned count = gate_count(&notebook->told);
    enum code refusal = notebook->refusal;
    snprintf(notebook->last, sizeof notebook->last, "%s %s %s %lld", method, id, address,
             (long long)life_ms);
    if (count < COUNT_OF(notebook->at))
        notebook->at[count] = timers_now();
    gate_pass(&notebook->told);
    return refusal ? error_new(refusal, "not now") : NULL;
}

static struct error *
announce(struct call *call, const Skycap__V1__AnnounceRequest *request,
         Skycap__V1__AnnounceReply *reply)
{
    (void)reply;
    char who[64];
    snprintf(who, sizeof who, "%s%s%s%s", request->node_id[0] ? "node " : "",
             request->node_id[0] ? request->node_id : request->controller_id,
             request->n_attributes ? " " : "",
             request->n_attributes ? request->attributes[0]->value : "");
    return note(call, "announce", who, request->address,
                request->time_to_live->seconds * 1000 + request->time_to_live->nanos / 1000000);
}

static struct error *
register_controller(struct call *call, const Oim__V0__RegisterControllerRequest *request,
                    Oim__V0__RegisterControllerReply *reply)
{
    (void)reply;
    return note(call, "register", request->controller_id, request->address, 0);
}

static struct error *
set_value(struct call *call, const Oim__V0__SetValueRequest *request, Oim__V0__SetValueReply *reply)
{
    (void)reply;
    return note(call, "set", request->value->path, request->value->value, 0);
}

static const struct skycap_v1_registry newest = {.announce = {announce}};
static const struct oim_v0_registry seed = {.register_controller = {register_controller}};
static const struct oim_v0_registry later = {.set_value = {set_value}};

/* OIM's own: what it does not know it takes for a controller's. */
static struct error *
miss_controller(struct call *call)
{
    return strncmp(call_path(call), "/oim.v0.Registry/", 17) == 0
               ? error_new(CODE_UNIMPLEMENTED, "unknown method")
               : error_new(CODE_FAILED_PRECONDITION, "missing or invalid controllerid meta data");
}

struct setup {
    struct ends ends; /* its runtime and server; the channel is the announcer's business */
    struct notebook notebook;
    struct announcer *announcer;
};

static void
open_registry(struct setup *setup, const struct service *service, const void *handlers)
{
    setup->ends.server = server_new(setup->ends.runtime, &(struct server_options){0});
    server_add_service(setup->ends.server, service, handlers, &setup->notebook);
    server_set_fallback(setup->ends.server, &(struct fallback){.run = miss_controller});
    succeed(server_listen(setup->ends.server, setup->ends.address, NULL));
}

static void
open_announcer(struct setup *setup, uint32_t delay_ms)
{
    const struct announcer_options options = {.registry = setup->ends.address,
                                              .id = "host-0",
                                              .address = "10.0.0.1:8999",
                                              .delay_ms = delay_ms,
                                              .runtime = setup->ends.runtime,
                                              .log = &setup->ends.log};
    succeed(announcer_open(&options, &setup->announcer));
    announcer_begin(setup->announcer);
}

static void
setup_open(struct setup *setup)
{
    *setup = (struct setup){.notebook.told = GATE_INIT};
    ends_choose_address(setup->ends.address);
    ends_open_runtime(&setup->ends, (struct runtime_options){0});
    setup->ends.log.level = LOG_ERROR + 1;
}

static void
setup_close(struct setup *setup)
{
    announcer_close(setup->announcer);
    ends_close(&setup->ends);
}

/* ---- tests ---- */

static void
test_renewed(void)
{
    struct setup setup;
    setup_open(&setup);
    open_registry(&setup, &skycap_v1_registry_service, &newest);
    open_announcer(&setup, 400);
    CHECK(gate_wait(&setup.notebook.told, 4));
    CHECK_TEXT(setup.notebook.last, "announce host-0 10.0.0.1:8999 1200");
    for (int i = 1; i < 4; i++) {
        uint64_t pause_ms = (setup.notebook.at[i] - setup.notebook.at[i - 1]) / MS;
        CHECK(pause_ms >= 355 && pause_ms < 1000);
    }
    setup_close(&setup);
}

static void
open_node_announcer(struct setup *setup, uint32_t delay_ms)
{
    const struct announcer_options options = {.registry = setup->ends.address,
                                              .id = "n-0",
                                              .is_node = true,
                                              .address = "10.0.0.1:1",
                                              .delay_ms = delay_ms,
                                              .runtime = setup->ends.runtime,
                                              .log = &setup->ends.log};
    succeed(announcer_open(&options, &setup->announcer));
}

static void
set_zone(struct setup *setup, const char *zone)
{
    struct text_pair pair = {"zone", zone};
    announcer_set_attributes(setup->announcer, &(struct text_map){&pair, 1, 1});
}

/* New attributes are told at once; the same ones are not told again. */
static void
test_node(void)
{
    struct setup setup;
    setup_open(&setup);
    open_registry(&setup, &skycap_v1_registry_service, &newest);
    open_node_announcer(&setup, 60000);
    set_zone(&setup, "a");
    announcer_begin(setup.announcer);
    CHECK(gate_wait(&setup.notebook.told, 1));
    CHECK_TEXT(setup.notebook.last, "announce node n-0 a 10.0.0.1:1 180000");
    uint64_t start = timers_now();
    set_zone(&setup, "b");
    CHECK(gate_wait(&setup.notebook.told, 2));
    CHECK(ms_since(start) < 2000);
    CHECK_TEXT(setup.notebook.last, "announce node n-0 b 10.0.0.1:1 180000");
    set_zone(&setup, "b");
    sleep_ms(300);
    CHECK_NUMBER(gate_count(&setup.notebook.told), 2);
    setup_close(&setup);
}

/* OIM's registry has no nodes, and must not take one for a controller. */
static void
test_node_of_older_registries(void)
{
    struct setup setup;
    setup_open(&setup);
    open_registry(&setup, &oim_v0_registry_service, &seed);
    open_node_announcer(&setup, 60000);
    announcer_begin(setup.announcer);
    sleep_ms(500);
    CHECK_NUMBER(gate_count(&setup.notebook.told), 0);
    setup_close(&setup);
}

/* An entry lives for a second at least: the registry takes no less. */
static void
test_shortest_life(void)
{
    struct setup setup;
    setup_open(&setup);
    open_registry(&setup, &skycap_v1_registry_service, &newest);
    open_announcer(&setup, 100);
    CHECK(gate_wait(&setup.notebook.told, 1));
    CHECK_TEXT(setup.notebook.last, "announce host-0 10.0.0.1:8999 1000");
    setup_close(&setup);
}

static void
check_way(const struct oim_v0_registry *handlers, const char *wanted)
{
    struct setup setup;
    setup_open(&setup);
    open_registry(&setup, &oim_v0_registry_service, handlers);
    open_announcer(&setup, 60000);
    CHECK(gate_wait(&setup.notebook.told, 1));
    CHECK_TEXT(setup.notebook.last, wanted);
    setup_close(&setup);
}

static void
test_older_registries(void)
{
    check_way(&seed, "register host-0 10.0.0.1:8999 0");
    check_way(&later, "set host-0/address 10.0.0.1:8999 0");
}

/* A registry that comes, goes and comes again; each time it is told soon, although the pause is long. */
static void
test_registry_comes_back(void)
{
    struct setup setup;
    setup_open(&setup);
    open_announcer(&setup, 60000);
    sleep_ms(100);
    open_registry(&setup, &skycap_v1_registry_service, &newest);
    uint64_t start = timers_now();
    CHECK(gate_wait(&setup.notebook.told, 1));
    CHECK(ms_since(start) < 2500);
    setup_close(&setup);
}

/* Refusals are tried again after one second, then two. */
static void
test_back_off(void)
{
    struct setup setup;
    setup_open(&setup);
    setup.notebook.refusal = CODE_PERMISSION_DENIED;
    open_registry(&setup, &skycap_v1_registry_service, &newest);
    open_announcer(&setup, 60000);
    CHECK(gate_wait(&setup.notebook.told, 2));
    setup.notebook.refusal = CODE_OK;
    CHECK(gate_wait(&setup.notebook.told, 3));
    uint64_t first_ms = (setup.notebook.at[1] - setup.notebook.at[0]) / MS;
    uint64_t second_ms = (setup.notebook.at[2] - setup.notebook.at[1]) / MS;
    CHECK(first_ms >= 895 && first_ms < 1600);
    CHECK(second_ms >= 1795 && second_ms < 2900);
    sleep_ms(300);
    CHECK_NUMBER(gate_count(&setup.notebook.told), 3);
    setup_close(&setup);
}

/* Nothing is sent any more, and the end does not wait for a registry that does not answer. */
static void
test_end(void)
{
    struct setup setup;
    setup_open(&setup);
    open_registry(&setup, &skycap_v1_registry_service, &newest);
    open_announcer(&setup, 100);
    CHECK(gate_wait(&setup.notebook.told, 2));
    uint64_t start = timers_now();
    announcer_stop(setup.announcer);
    announcer_close(setup.announcer);
    CHECK(ms_since(start) < 1000);
    setup.announcer = NULL;
    unsigned told = gate_count(&setup.notebook.told);
    sleep_ms(300);
    CHECK_NUMBER(gate_count(&setup.notebook.told), told);
    setup_close(&setup);
}

static void
test_bad_address(void)
{
    struct setup setup;
    setup_open(&setup);
    const struct announcer_options options = {
        .registry = "nowhere", .runtime = setup.ends.runtime, .log = &setup.ends.log};
    CHECK_CODE(announcer_open(&options, &setup.announcer), CODE_INVALID_ARGUMENT);
    setup_close(&setup);
}

int
main(void)
{
    test_renewed();
    test_node();
    test_node_of_older_registries();
    test_shortest_life();
    test_older_registries();
    test_registry_comes_back();
    test_back_off();
    test_end();
    test_bad_address();
    return check_report("announcer");
}
