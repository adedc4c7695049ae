/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry/forward.c and controllers.c: calls that go to the controller which their header names. */
#include "base/clock.h"
#include "drivers/driver.h"
#include "echo.h"
#include "registry/registry_internal.h"
#include "registry_ends.h"

/* A controller: answers Probe, and echoes a stream. */
struct desk {
    struct ends ends;
    atomic_uint calls;
    atomic_uint registries; /* that the last call has come through */
    struct gate entered;
    struct gate may_go_on;
};

static struct error *
count_probe(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct desk *desk = call_context(call);
    atomic_fetch_add(&desk->calls, 1);
    atomic_store(&desk->registries, (unsigned)metadata_count(call_metadata(call), DRIVER_VIA));
    if (metadata_find(call_metadata(call), "x-wait")) {
        gate_pass(&desk->entered);
        gate_wait(&desk->may_go_on, 1);
    }
    return NULL;
}

static const struct csi_v1_identity desk_handlers = {.probe = {count_probe}};

static struct ends_setup
desk_setup(struct desk *desk)
{
    return (struct ends_setup){
        .service = &csi_v1_identity_service, .handlers = &desk_handlers, .context = desk};
}

static void
desk_open(struct desk *desk)
{
    *desk = (struct desk){.entered = GATE_INIT, .may_go_on = GATE_INIT};
    struct ends_setup setup = desk_setup(desk);
    ends_open(&desk->ends, &setup);
}

static void
desk_close(struct desk *desk)
{
    gate_pass(&desk->may_go_on);
    ends_close(&desk->ends);
}

static size_t
metric(struct office *office, const char *name)
{
    struct buffer text AUTO(buffer_clear) = {0};
    registry_print_metrics(office->registry, &text);
    runtime_print_metrics(office->runtime, &text);
    const char *line = strstr(buffer_text(&text), name);
    return line ? strtoul(line + strlen(name), NULL, 10) : SIZE_MAX;
}

/* Their own channel to the registry is one of them. */
static size_t
client_connections(struct office *office)
{
    return count_client_connections(office->runtime, true) - 1;
}

static void
a_call_goes_to_the_controller_that_its_header_names(void)
{
    struct office office;
    struct desk desks[2];
    office_open(&office);
    desk_open(&desks[0]);
    desk_open(&desks[1]);
    succeed(register_controller(&office, "host-0", desks[0].ends.address));
    succeed(register_controller(&office, "host-1", desks[1].ends.address));
    for (int i = 0; i < 100; i++)
        CHECK_CODE(probe_controller(&office, "host-1"), CODE_OK);
    CHECK_CODE(probe_controller(&office, "host-0"), CODE_OK);
    CHECK_NUMBER(atomic_load(&desks[0].calls), 1);
    CHECK_NUMBER(atomic_load(&desks[1].calls), 100);
    CHECK_NUMBER(client_connections(&office), 2);
    CHECK_NUMBER(metric(&office, "\nskycap_registry_channels "), 2);
    office_close(&office);
    desk_close(&desks[0]);
    desk_close(&desks[1]);
}

static void
what_cannot_be_passed_on_says_why(void)
{
    struct office office;
    Skycap__V1__AnnounceReply *reply;
    const char *const twice[] = {"h", "h"};
    office_open(&office);
    struct error *missing AUTO(error_cleanup) = probe_controllers(&office, NULL, 0);
    CHECK_NUMBER(missing->code, CODE_UNIMPLEMENTED);
    CHECK(strstr(missing->message, "unknown method /csi.v1.Identity/Probe") &&
          strstr(missing->message, "controllerid"));
    CHECK_CODE(probe_controllers(&office, twice, 2), CODE_INVALID_ARGUMENT);
    struct error *unknown AUTO(error_cleanup) = probe_controller(&office, "h");
    CHECK_NUMBER(unknown->code, CODE_UNAVAILABLE);
    CHECK_TEXT(unknown->message, "controller \"h\" is not registered");
    succeed(announce(&office, "h", "unix-abstract:nobody-is-there", 1000, &reply));
    CHECK_CODE(probe_controller(&office, "h"), CODE_UNAVAILABLE);
    sleep_ms(1050);
    struct error *expired AUTO(error_cleanup) = probe_controller(&office, "h");
    CHECK_NUMBER(expired->code, CODE_UNAVAILABLE);
    CHECK(strstr(expired->message, "expired at 2"));
    succeed(register_controller(&office, "h", ""));
    struct error *removed AUTO(error_cleanup) = probe_controller(&office, "h");
    CHECK_TEXT(removed->message, "controller \"h\" is not registered");
    office_close(&office);
}

static void
methods_of_the_registry_itself_are_never_passed_on(void)
{
    static const struct method unknown = {.path = "/oim.v0.Registry/Nothing",
                                          .name = "Nothing",
                                          .kind = METHOD_UNARY,
                                          .input = &csi__v1__probe_request__descriptor,
                                          .output = &csi__v1__probe_response__descriptor};
    struct office office;
    struct desk desk;
    struct metadata metadata = {0};
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    office_open(&office);
    desk_open(&desk);
    succeed(register_controller(&office, "h", desk.ends.address));
    succeed(metadata_add(&metadata, &office.arena, "controllerid", "h", 1));
    CHECK_CODE(channel_call(office.channel, &unknown, &request.base,
                            &(struct call_options){.metadata = &metadata}, &office.arena, &reply),
               CODE_UNIMPLEMENTED);
    CHECK_NUMBER(client_connections(&office), 0);
    office_close(&office);
    desk_close(&desk);
}

static void
a_registration_counts_from_its_answer_on(void)
{
    struct office office;
    struct desk desk;
    office_open(&office);
    desk_open(&desk);
    for (int i = 0; i < 300; i++) {
        CHECK_CODE(register_controller(&office, "h", desk.ends.address), CODE_OK);
        CHECK_CODE(probe_controller(&office, "h"), CODE_OK);
        CHECK_CODE(register_controller(&office, "h", ""), CODE_OK);
        CHECK_CODE(probe_controller(&office, "h"), CODE_UNAVAILABLE);
    }
    office_close(&office);
    desk_close(&desk);
}

/* Attempts to connect pause for a second after the first failure: who has announced himself again is not to wait for that. */
static void
a_controller_that_came_back_is_reached_as_soon_as_it_says_so(void)
{
    struct office office;
    struct desk desk;
    office_open(&office);
    desk_open(&desk);
    struct ends_setup setup = desk_setup(&desk);
    CHECK_CODE(register_controller(&office, "h", desk.ends.address), CODE_OK);
    CHECK_CODE(probe_controller(&office, "h"), CODE_OK);
    server_free(STEAL(desk.ends.server));
    while (take_code(probe_controller(&office, "h")) != CODE_UNAVAILABLE)
        sleep_ms(1);
    CHECK_CODE(probe_controller(&office, "h"), CODE_UNAVAILABLE);
    ends_open_server(&desk.ends, &setup);
    CHECK_CODE(register_controller(&office, "h", desk.ends.address), CODE_OK);
    CHECK_CODE(probe_controller(&office, "h"), CODE_OK);
    office_close(&office);
    desk_close(&desk);
}

static void
drop_expired(void *context, const struct entry *entry)
{
    (void)context;
    (void)entry;
}

/* Closes the channels that were not used for so long, as the registry does every now and then for those of ten minutes. */
static void
sweep_channels(struct office *office, uint64_t idle_ns)
{
    struct controllers_sweep sweep = {
        .now_ms = clock_unix_ms(), .idle_ns = idle_ns, .tell = drop_expired};
    controllers_sweep(office->registry->controllers, &sweep);
}

static void
a_channel_that_nobody_uses_is_closed_and_made_again(void)
{
    struct office office;
    struct desk desk;
    office_open(&office);
    desk_open(&desk);
    succeed(register_controller(&office, "h", desk.ends.address));
    CHECK_CODE(probe_controller(&office, "h"), CODE_OK);
    sweep_channels(&office, 60000 * MS);
    CHECK_NUMBER(metric(&office, "\nskycap_registry_channels "), 1);
    sweep_channels(&office, 0);
    CHECK_NUMBER(metric(&office, "\nskycap_registry_channels "), 0);
    CHECK_NUMBER(count_client_connections(office.runtime, false), 1);
    CHECK_CODE(probe_controller(&office, "h"), CODE_OK);
    CHECK_NUMBER(client_connections(&office), 2);
    office_close(&office);
    desk_close(&desk);
}

static struct client_call *
begin_waiting_probe(struct office *office, const char *id)
{
    struct metadata metadata = {0};
    struct client_call *call;
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    succeed(metadata_add(&metadata, &office->arena, "controllerid", id, strlen(id)));
    succeed(metadata_add(&metadata, &office->arena, "x-wait", "1", 1));
    succeed(client_call_open(office->channel, CSI_V1_IDENTITY_PROBE,
                             &(struct call_options){.metadata = &metadata}, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

static void
calls_under_way_outlast_the_entry_and_the_address(void)
{
    struct office office;
    struct desk old, new;
    office_open(&office);
    desk_open(&old);
    desk_open(&new);
    succeed(register_controller(&office, "h", old.ends.address));
    struct client_call *first = begin_waiting_probe(&office, "h");
    CHECK(gate_wait(&old.entered, 1));
    succeed(register_controller(&office, "h", new.ends.address));
    CHECK_CODE(probe_controller(&office, "h"), CODE_OK);
    CHECK_NUMBER(atomic_load(&new.calls), 1);
    struct client_call *second = begin_waiting_probe(&office, "h");
    CHECK(gate_wait(&new.entered, 1));
    succeed(register_controller(&office, "h", ""));
    CHECK_CODE(probe_controller(&office, "h"), CODE_UNAVAILABLE);
    gate_pass(&old.may_go_on);
    gate_pass(&new.may_go_on);
    CHECK_CODE(client_call_finish(first), CODE_OK);
    CHECK_CODE(client_call_finish(second), CODE_OK);
    client_call_free(first);
    client_call_free(second);
    CHECK_NUMBER(client_connections(&office), 2);
    CHECK_NUMBER(metric(&office, "\nskycap_registry_channels "), 0);
    office_close(&office);
    desk_close(&old);
    desk_close(&new);
}

/* ---- streams ---- */

static const struct plugin_grpcbroker broker_handlers = {.start_stream = {echo_messages}};

static void
a_stream_goes_on_when_its_controller_is_removed(void)
{
    struct office office;
    struct ends behind;
    struct metadata metadata = {0};
    struct client_call *call;
    Plugin__ConnInfo message = PLUGIN__CONN_INFO__INIT, *back;
    office_open(&office);
    ends_open(&behind, &(struct ends_setup){.service = &plugin_grpcbroker_service,
                                            .handlers = &broker_handlers});
    succeed(register_controller(&office, "h", behind.address));
    succeed(metadata_add(&metadata, &office.arena, "controllerid", "h", 1));
    succeed(client_call_open(office.channel, PLUGIN_GRPCBROKER_START_STREAM,
                             &(struct call_options){.metadata = &metadata}, &call));
    for (uint32_t i = 1; i <= 20; i++) {
        message.service_id = i;
        succeed(client_call_send(call, &message.base));
        succeed(client_call_recv(call, &office.arena, &back));
        CHECK(back && back->service_id == i);
        if (i == 10)
            succeed(register_controller(&office, "h", ""));
    }
    client_call_close_send(call);
    CHECK_CODE(client_call_finish(call), CODE_OK);
    client_call_free(call);
    office_close(&office);
    ends_close(&behind);
}

/* ---- our own controller ---- */

static void
calls_to_the_own_controller_are_not_passed_on(void)
{
    struct store *store;
    struct office office;
    struct desk desk;
    succeed(store_open("memory:", NULL, &store));
    office_open_with(&office, store, (struct registry_options){.own_controller = "self"});
    desk_open(&desk);
    succeed(register_controller(&office, "self", desk.ends.address));
    CHECK_CODE(probe_controller(&office, "self"), CODE_UNIMPLEMENTED);
    CHECK_NUMBER(atomic_load(&desk.calls), 0);
    office_close(&office);
    desk_close(&desk);
}

/* ---- circles ---- */

static void
check_circle_is_found(struct office *office)
{
    struct error *error AUTO(error_cleanup) = probe_controller(office, "h");
    CHECK_NUMBER(error->code, CODE_FAILED_PRECONDITION);
    CHECK(strstr(error->message, "controller \"h\"") &&
          strstr(error->message, "leads back to this registry"));
}

static void
a_controller_at_the_registrys_own_address_is_found(void)
{
    struct office office;
    office_open(&office);
    succeed(register_controller(&office, "h", office.address));
    check_circle_is_found(&office);
    CHECK_NUMBER(client_connections(&office), 1);
    office_close(&office);
}

static void
a_circle_of_two_registries_is_found(void)
{
    struct office one, two;
    office_open(&one);
    office_open(&two);
    succeed(register_controller(&one, "h", two.address));
    succeed(register_controller(&two, "h", one.address));
    check_circle_is_found(&one);
    check_circle_is_found(&two);
    office_close(&one);
    office_close(&two);
}

static void
a_registry_behind_a_registry_is_fine(void)
{
    struct office offices[5];
    struct desk desk;
    desk_open(&desk);
    for (size_t i = 0; i < COUNT_OF(offices); i++) {
        office_open(&offices[i]);
        succeed(
            register_controller(&offices[i], "h", i ? offices[i - 1].address : desk.ends.address));
    }
    CHECK_CODE(probe_controller(&offices[4], "h"), CODE_OK);
    CHECK_NUMBER(atomic_load(&desk.calls), 1);
    CHECK_NUMBER(atomic_load(&desk.registries), 5);
    for (size_t i = 0; i < COUNT_OF(offices); i++)
        office_close(&offices[i]);
    desk_close(&desk);
}

int
main(void)
{
    a_call_goes_to_the_controller_that_its_header_names();
    what_cannot_be_passed_on_says_why();
    methods_of_the_registry_itself_are_never_passed_on();
    a_registration_counts_from_its_answer_on();
    a_controller_that_came_back_is_reached_as_soon_as_it_says_so();
    a_channel_that_nobody_uses_is_closed_and_made_again();
    calls_under_way_outlast_the_entry_and_the_address();
    a_stream_goes_on_when_its_controller_is_removed();
    calls_to_the_own_controller_are_not_passed_on();
    a_controller_at_the_registrys_own_address_is_found();
    a_circle_of_two_registries_is_found();
    a_registry_behind_a_registry_is_fine();
    return check_report("test_registry_forward");
}
