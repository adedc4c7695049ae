/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings and ends: listening, connecting, draining, closing while calls run. */
#include <malloc.h>
#include <sys/stat.h>

#include "proto/goplugin.rpc.h"
#include "raw_peer.h"
#include "rpc/client/channel_internal.h"
#include "rpc_ends.h"

struct seen {
    struct gate entered;
    struct gate may_leave;
    struct gate left;
    bool was_cancelled;
};

static struct error *
hold(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    struct seen *seen = call_context(call);
    (void)request;
    (void)reply;
    gate_pass(&seen->entered);
    gate_wait(&seen->may_leave, 1);
    seen->was_cancelled = call_is_cancelled(call);
    gate_pass(&seen->left);
    return NULL;
}

static const struct csi_v1_identity holding_handlers = {.probe = {hold}};
static const struct csi_v1_identity quick_handlers = {.probe = {answer_probe}};

static const struct ends_setup quick_setup = {.service = &csi_v1_identity_service,
                                              .handlers = &quick_handlers};

static void
open_holding(struct ends *ends, struct seen *seen)
{
    *seen = (struct seen){GATE_INIT, GATE_INIT, GATE_INIT, false};
    ends_open(ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                         .handlers = &holding_handlers,
                                         .context = seen});
}

/* ---- giving memory back ---- */

static struct gate trim_entered = GATE_INIT, trim_may_leave = GATE_INIT;

/* Instead of the C library's: the first one takes as long as the test wants. */
int
malloc_trim(size_t pad)
{
    (void)pad;
    gate_pass(&trim_entered);
    gate_wait(&trim_may_leave, 1);
    return 1;
}

static void
connect_and_leave(const char *address, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(raw_connect(address));
}

/* A walk through the heap is worth it when many have left. Meanwhile others are served. */
static void
giving_memory_back_keeps_nobody_waiting(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    unsigned before = gate_count(&trim_entered);
    connect_and_leave(ends.address, 3);
    sleep_ms(1200); /* more than two looks */
    CHECK_NUMBER(gate_count(&trim_entered), before);
    connect_and_leave(ends.address, 60);
    CHECK(gate_wait(&trim_entered, before + 1));
    CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = 1000 * MS}), CODE_OK);
    gate_pass(&trim_may_leave);
    ends_close(&ends);
}

/* The last one that leaves, though it is only one. */
static void
memory_is_given_back_when_nobody_is_left(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    unsigned before = gate_count(&trim_entered);
    connect_and_leave(ends.address, 1);
    CHECK(gate_wait(&trim_entered, before + 1));
    ends_close(&ends);
}

/* ---- things that a test does beside ---- */

struct background {
    pthread_t thread;
    struct channel *channel;
    struct call_options options;
    enum code code;
    struct ends *ends;
    struct gate done;
};

static void *
run_probe(void *argument)
{
    struct background *background = argument;
    background->code = take_code(probe(background->channel, &background->options));
    gate_pass(&background->done);
    return NULL;
}

static void
start_probe(struct background *background, struct channel *channel, bool wait_for_ready)
{
    *background = (struct background){
        .channel = channel, .options = {.wait_for_ready = wait_for_ready}, .done = GATE_INIT};
    pthread_create(&background->thread, NULL, run_probe, background);
}

static enum code
join_probe(struct background *background)
{
    pthread_join(background->thread, NULL);
    return background->code;
}

static void *
run_drain(void *argument)
{
    struct background *background = argument;
    server_drain(background->ends->server, PATIENCE_MS);
    gate_pass(&background->done);
    return NULL;
}

static void *
run_free(void *argument)
{
    struct background *background = argument;
    server_free(STEAL(background->ends->server));
    gate_pass(&background->done);
    return NULL;
}

static void
start(struct background *background, struct ends *ends, void *(*run)(void *))
{
    *background = (struct background){.ends = ends, .done = GATE_INIT};
    pthread_create(&background->thread, NULL, run, background);
}

/* ---- the server's end ---- */

static void
draining_lets_calls_finish_and_takes_no_connections(void)
{
    struct ends ends;
    struct seen seen;
    struct background call, drain;
    struct channel *late;
    open_holding(&ends, &seen);
    start_probe(&call, ends.channel, false);
    CHECK(gate_wait(&seen.entered, 1));
    start(&drain, &ends, run_drain);
    sleep_ms(30);
    CHECK_NUMBER(gate_count(&drain.done), 0);
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &late));
    CHECK_CODE(probe(late, NULL), CODE_UNAVAILABLE);
    channel_close(late);
    gate_pass(&seen.may_leave);
    CHECK_NUMBER(join_probe(&call), CODE_OK);
    CHECK(gate_wait(&drain.done, 1));
    pthread_join(drain.thread, NULL);
    CHECK(!seen.was_cancelled);
    CHECK_CODE(probe(ends.channel, NULL), CODE_UNAVAILABLE);
    ends_close(&ends);
}

static void
a_drain_that_takes_too_long_cancels_what_is_left(void)
{
    struct ends ends;
    struct seen seen;
    struct background call;
    open_holding(&ends, &seen);
    start_probe(&call, ends.channel, false);
    CHECK(gate_wait(&seen.entered, 1));
    uint64_t begin = timers_now();
    server_drain(ends.server, 40);
    CHECK(ms_since(begin) >= 39 && ms_since(begin) < 2000);
    sleep_ms(30); /* until the handler can have learnt it */
    gate_pass(&seen.may_leave);
    CHECK(gate_wait(&seen.left, 1));
    CHECK(seen.was_cancelled);
    ends_close(&ends);
    CHECK_NUMBER(join_probe(&call), CODE_UNAVAILABLE);
}

static void
an_idle_server_drains_at_once(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    uint64_t begin = timers_now();
    server_drain(ends.server, PATIENCE_MS);
    server_drain(ends.server, PATIENCE_MS);
    CHECK(ms_since(begin) < 1000);
    ends_close(&ends);
}

static void
freeing_a_server_tells_clients_and_waits_for_handlers(void)
{
    struct ends ends;
    struct seen seen;
    struct background call, freeing;
    open_holding(&ends, &seen);
    start_probe(&call, ends.channel, false);
    CHECK(gate_wait(&seen.entered, 1));
    start(&freeing, &ends, run_free);
    CHECK_NUMBER(join_probe(&call), CODE_UNAVAILABLE);
    sleep_ms(20);
    CHECK_NUMBER(gate_count(&freeing.done), 0);
    gate_pass(&seen.may_leave);
    CHECK(gate_wait(&freeing.done, 1));
    pthread_join(freeing.thread, NULL);
    CHECK(seen.was_cancelled);
    ends_close(&ends);
}

/* ---- the channel's end ---- */

static void
closing_a_channel_ends_its_calls(void)
{
    struct ends ends;
    struct seen seen;
    struct background call;
    open_holding(&ends, &seen);
    start_probe(&call, ends.channel, false);
    CHECK(gate_wait(&seen.entered, 1));
    channel_close(STEAL(ends.channel));
    CHECK_NUMBER(join_probe(&call), CODE_UNAVAILABLE);
    sleep_ms(30); /* until the handler can have learnt it */
    gate_pass(&seen.may_leave);
    CHECK(gate_wait(&seen.left, 1));
    CHECK(seen.was_cancelled);
    ends_close(&ends);
}

/* A server that takes the connection and says nothing. */
static void
closing_a_channel_ends_calls_that_wait_for_a_silent_server(void)
{
    struct ends ends = {0};
    struct background call;
    ends_choose_address(ends.address);
    int listener = raw_listen(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &ends.channel));
    start_probe(&call, ends.channel, true);
    int fd = raw_accept(listener, 2000);
    channel_close(STEAL(ends.channel));
    CHECK_NUMBER(join_probe(&call), CODE_UNAVAILABLE);
    close(fd);
    close(listener);
    runtime_close(ends.runtime);
}

static void
a_channel_may_be_closed_before_its_calls_are_freed(void)
{
    struct ends ends;
    struct client_call *call;
    ends_open(&ends, &quick_setup);
    succeed(client_call_open(ends.channel, PLUGIN_GRPCBROKER_START_STREAM, NULL, &call));
    channel_close(STEAL(ends.channel));
    enum code code = take_code(client_call_finish(call));
    CHECK(code == CODE_UNAVAILABLE || code == CODE_UNIMPLEMENTED || code == CODE_CANCELLED);
    client_call_free(call);
    ends_close(&ends);
}

static void
channels_and_runtimes_that_never_called_can_be_closed(void)
{
    struct ends ends = {0};
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, "127.0.0.1:1", &(struct channel_options){0}, &ends.channel));
    ends_close(&ends);
    channel_close(NULL);
    server_free(NULL);
    runtime_close(NULL);
}

/* Handlers have just kept all workers busy when the runtime goes. */
static void
a_runtime_can_be_closed_right_after_a_burst(void)
{
    for (int round = 0; round < 10; round++) {
        struct ends ends;
        struct background calls[24];
        ends_open(&ends, &quick_setup);
        for (size_t i = 0; i < COUNT_OF(calls); i++)
            start_probe(&calls[i], ends.channel, false);
        for (size_t i = 0; i < COUNT_OF(calls); i++)
            CHECK_NUMBER(join_probe(&calls[i]), CODE_OK);
        ends_close(&ends);
    }
}

/* ---- connecting ---- */

static void
a_server_that_is_not_there_is_unavailable_and_not_asked_again_at_once(void)
{
    struct ends ends = {0};
    ends_choose_address(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &ends.channel));
    struct error *error AUTO(error_cleanup) = probe(ends.channel, NULL);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, "Connection refused"));
    /* It comes up, but the pause of about a second has just begun. */
    ends_open_server(&ends, &quick_setup);
    uint64_t begin = timers_now();
    CHECK_CODE(probe(ends.channel, NULL), CODE_UNAVAILABLE);
    CHECK(ms_since(begin) < 500);
    ends_close(&ends);
}

static void
a_tcp_port_that_nobody_serves_is_told_as_refused(void)
{
    struct ends ends = {0};
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, "127.0.0.1:1", &(struct channel_options){0}, &ends.channel));
    struct error *error AUTO(error_cleanup) = probe(ends.channel, NULL);
    CHECK_NUMBER(error->code, CODE_UNAVAILABLE);
    CHECK(strstr(error->message, "Connection refused"));
    ends_close(&ends);
}

static void
who_waits_for_ready_is_served_when_the_server_comes_up(void)
{
    struct ends ends = {0};
    struct background call;
    ends_choose_address(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &ends.channel));
    start_probe(&call, ends.channel, true);
    sleep_ms(50);
    CHECK_NUMBER(gate_count(&call.done), 0);
    ends_open_server(&ends, &quick_setup);
    CHECK_NUMBER(join_probe(&call), CODE_OK);
    ends_close(&ends);
}

static void
who_waits_for_ready_waits_no_longer_than_his_deadline(void)
{
    struct ends ends = {0};
    ends_choose_address(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &ends.channel));
    CHECK_CODE(
        probe(ends.channel, &(struct call_options){.timeout_ns = 40 * MS, .wait_for_ready = true}),
        CODE_DEADLINE_EXCEEDED);
    ends_close(&ends);
}

static void
a_server_that_says_nothing_is_given_up_after_a_time(void)
{
    struct ends ends = {0};
    ends_choose_address(ends.address);
    int listener = raw_listen(ends.address);
    ends_open_runtime(&ends, (struct runtime_options){0});
    succeed(channel_open(ends.runtime, ends.address,
                         &(struct channel_options){.connect_timeout_ms = 50}, &ends.channel));
    uint64_t begin = timers_now();
    CHECK_CODE(probe(ends.channel, &(struct call_options){.timeout_ns = 2000 * MS}),
               CODE_UNAVAILABLE);
    CHECK(ms_since(begin) >= 49 && ms_since(begin) < 1500);
    ends_close(&ends);
    close(listener);
}

static void
a_channel_connects_again_when_the_server_was_restarted(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    for (int i = 0; i < 3; i++) {
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
        server_free(ends.server);
        ends_open_server(&ends, &quick_setup);
    }
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    ends_close(&ends);
}

static void
use_up_stream_numbers(void *argument)
{
    struct channel *channel = argument;
    nghttp2_session_set_next_stream_id(channel->conn->session, INT32_MAX);
}

/* HTTP/2 has numbers for a thousand million calls on one connection. */
static void
a_channel_connects_again_when_the_numbers_of_streams_are_used_up(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    loop_run(runtime_loop(ends.runtime), use_up_stream_numbers, ends.channel);
    for (int i = 0; i < 3; i++)
        CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    ends_close(&ends);
}

/* ---- addresses ---- */

static void
several_servers_live_in_one_process(void)
{
    struct ends first, second, third = {0};
    ends_open(&first, &quick_setup);
    ends_open(&second, &quick_setup);
    third.runtime = first.runtime;
    ends_choose_address(third.address);
    ends_open_server(&third, &quick_setup);
    succeed(
        channel_open(second.runtime, third.address, &(struct channel_options){0}, &third.channel));
    CHECK_CODE(probe(first.channel, NULL), CODE_OK);
    CHECK_CODE(probe(second.channel, NULL), CODE_OK);
    CHECK_CODE(probe(third.channel, NULL), CODE_OK);
    channel_close(third.channel);
    ends_close(&second);
    server_free(third.server);
    CHECK_CODE(probe(first.channel, NULL), CODE_OK);
    ends_close(&first);
}

static void
a_server_on_tcp_tells_its_port_and_serves_several_addresses(void)
{
    struct ends ends;
    struct channel *tcp;
    char text[ADDRESS_TEXT_SIZE];
    ends_open(&ends, &quick_setup);
    succeed(server_listen(ends.server, "127.0.0.1:0", NULL));
    CHECK(server_address(ends.server, 1)->port > 0);
    CHECK(!server_address(ends.server, 2));
    address_print(server_address(ends.server, 1), text, sizeof text);
    succeed(channel_open(ends.runtime, text, &(struct channel_options){0}, &tcp));
    CHECK_CODE(probe(tcp, NULL), CODE_OK);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    channel_close(tcp);
    ends_close(&ends);
}

static void
check_served(struct ends *ends, const char *host, unsigned port)
{
    char text[ADDRESS_TEXT_SIZE];
    struct channel *tcp;
    snprintf(text, sizeof text, "%s:%u", host, port);
    succeed(channel_open(ends->runtime, text, &(struct channel_options){0}, &tcp));
    CHECK_CODE(probe(tcp, NULL), CODE_OK);
    channel_close(tcp);
}

/* Without a host: 0.0.0.0 and [::], which do not get into each other's way. */
static void
a_server_without_a_host_serves_ipv4_and_ipv6_on_one_port(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    succeed(server_listen(ends.server, ":0", NULL));
    const struct address *first = server_address(ends.server, 1);
    const struct address *second = server_address(ends.server, 2);
    CHECK(first && second && first->port > 0 && first->port == second->port);
    CHECK(!server_address(ends.server, 3));
    check_served(&ends, "127.0.0.1", first->port);
    check_served(&ends, "[::1]", first->port);
    ends_close(&ends);
}

static void
all_of_ipv6_alone_takes_ipv4_too(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    succeed(server_listen(ends.server, "[::]:0", NULL));
    CHECK(!server_address(ends.server, 2));
    check_served(&ends, "127.0.0.1", server_address(ends.server, 1)->port);
    check_served(&ends, "[::1]", server_address(ends.server, 1)->port);
    ends_close(&ends);
}

static void
an_address_in_use_is_refused(void)
{
    struct ends ends;
    ends_open(&ends, &quick_setup);
    struct server *second = server_new(ends.runtime, &(struct server_options){0});
    CHECK_CODE(server_listen(second, ends.address, NULL), CODE_UNAVAILABLE);
    CHECK_CODE(server_listen(second, "nonsense", NULL), CODE_INVALID_ARGUMENT);
    server_free(second);
    ends_close(&ends);
}

static void
a_socket_file_has_its_mode_and_goes_with_its_server(void)
{
    struct ends ends = {0};
    char directory[] = "/tmp/skycap-unit-XXXXXX";
    struct stat found = {0};
    CHECK(mkdtemp(directory));
    snprintf(ends.address, sizeof ends.address, "unix:%s/s", directory);
    const char *path = ends.address + strlen("unix:");
    ends_open_runtime(&ends, (struct runtime_options){0});
    ends_open_server(&ends, &quick_setup);
    CHECK(stat(path, &found) == 0 && (found.st_mode & 0777) == 0600);
    struct server *second = server_new(ends.runtime, &(struct server_options){0});
    CHECK_CODE(server_listen(second, ends.address, NULL), CODE_FAILED_PRECONDITION);
    server_free(ends.server);
    CHECK(stat(path, &found) != 0);
    succeed(server_listen(second, ends.address, &(struct listen_options){.socket_mode = 0660}));
    CHECK(stat(path, &found) == 0 && (found.st_mode & 0777) == 0660);
    server_free(second);
    CHECK(rmdir(directory) == 0);
    runtime_close(ends.runtime);
}

/* A client may try elsewhere what was sent away: it must not have been done here as well. */
static void
more_connections_than_allowed_are_sent_away_undone(void)
{
    struct ends ends;
    struct channel *other;
    struct seen seen = {GATE_INIT, GATE_INIT, GATE_INIT, false};
    gate_pass(&seen.may_leave);
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                          .handlers = &holding_handlers,
                                          .context = &seen,
                                          .server = {.max_connections = 1}});
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &other));
    CHECK_CODE(probe(other, &(struct call_options){.timeout_ns = 1000 * MS}), CODE_UNAVAILABLE);
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK_NUMBER(gate_count(&seen.entered), 2);
    channel_close(other);
    ends_close(&ends);
}

int
main(void)
{
    giving_memory_back_keeps_nobody_waiting();
    memory_is_given_back_when_nobody_is_left();
    draining_lets_calls_finish_and_takes_no_connections();
    a_drain_that_takes_too_long_cancels_what_is_left();
    an_idle_server_drains_at_once();
    freeing_a_server_tells_clients_and_waits_for_handlers();
    closing_a_channel_ends_its_calls();
    closing_a_channel_ends_calls_that_wait_for_a_silent_server();
    a_channel_may_be_closed_before_its_calls_are_freed();
    channels_and_runtimes_that_never_called_can_be_closed();
    a_runtime_can_be_closed_right_after_a_burst();
    a_server_that_is_not_there_is_unavailable_and_not_asked_again_at_once();
    a_tcp_port_that_nobody_serves_is_told_as_refused();
    who_waits_for_ready_is_served_when_the_server_comes_up();
    who_waits_for_ready_waits_no_longer_than_his_deadline();
    a_server_that_says_nothing_is_given_up_after_a_time();
    a_channel_connects_again_when_the_server_was_restarted();
    a_channel_connects_again_when_the_numbers_of_streams_are_used_up();
    several_servers_live_in_one_process();
    a_server_on_tcp_tells_its_port_and_serves_several_addresses();
    a_server_without_a_host_serves_ipv4_and_ipv6_on_one_port();
    all_of_ipv6_alone_takes_ipv4_too();
    an_address_in_use_is_refused();
    a_socket_file_has_its_mode_and_goes_with_its_server();
    more_connections_than_allowed_are_sent_away_undone();
    return check_report("test_rpc_life");
}
