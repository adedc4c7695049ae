/* SPDX-License-Identifier: Apache-2.0 */
/* channel_retire: a channel that closes with its last call. */
#include "raw_peer.h"
#include "rpc_ends.h"

struct stay {
    struct gate entered;
    struct gate may_go_on;
};

static struct error *
wait_inside(struct call *call, const Csi__V1__ProbeRequest *request, Csi__V1__ProbeResponse *reply)
{
    (void)request;
    (void)reply;
    struct stay *stay = call_context(call);
    gate_pass(&stay->entered);
    gate_wait(&stay->may_go_on, 1);
    return NULL;
}

static struct client_call *
begin_probe(struct channel *channel)
{
    struct client_call *call;
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    succeed(client_call_open(channel, CSI_V1_IDENTITY_PROBE,
                             &(struct call_options){.timeout_ns = 2 * PATIENCE_MS * MS}, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

static bool
all_connections_close(struct ends *ends)
{
    for (int i = 0; i < 200; i++) {
        if (!count_client_connections(ends->runtime, false))
            return true;
        sleep_ms(10);
    }
    return false;
}

static void
calls_under_way_end_well_and_then_the_connection_closes(void)
{
    static const struct csi_v1_identity handlers = {.probe = {wait_inside}};
    struct stay stay = {GATE_INIT, GATE_INIT};
    struct ends ends;
    ends_open(&ends, &(struct ends_setup){.service = &csi_v1_identity_service,
                                          .handlers = &handlers,
                                          .context = &stay});
    struct client_call *first = begin_probe(ends.channel);
    struct client_call *second = begin_probe(ends.channel);
    CHECK(gate_wait(&stay.entered, 2));
    channel_retire(STEAL(ends.channel));
    sleep_ms(50);
    CHECK_NUMBER(count_client_connections(ends.runtime, false), 1);
    gate_pass(&stay.may_go_on);
    CHECK_CODE(client_call_finish(first), CODE_OK);
    CHECK_CODE(client_call_finish(second), CODE_OK);
    CHECK(all_connections_close(&ends));
    client_call_free(first);
    client_call_free(second);
    ends_close(&ends);
}

static void
an_idle_or_unused_channel_closes_at_once(void)
{
    static const struct csi_v1_identity handlers = {.probe = {answer_probe}};
    struct ends ends;
    struct channel *unused;
    ends_open(&ends,
              &(struct ends_setup){.service = &csi_v1_identity_service, .handlers = &handlers});
    CHECK_CODE(probe(ends.channel, NULL), CODE_OK);
    CHECK_NUMBER(count_client_connections(ends.runtime, false), 1);
    channel_retire(STEAL(ends.channel));
    CHECK(all_connections_close(&ends));
    succeed(channel_open(ends.runtime, ends.address, &(struct channel_options){0}, &unused));
    channel_retire(unused);
    channel_retire(NULL);
    ends_close(&ends);
}

/* The server accepts, and speaks late: the call waits for the connection meanwhile. */
static void
a_call_that_waits_for_the_connection_is_still_made(void)
{
    struct ends ends = {0};
    struct raw_frame frame;
    char address[96];
    ends_open_runtime(&ends, (struct runtime_options){0});
    ends_choose_address(address);
    int listener = raw_listen(address);
    struct channel *channel;
    succeed(channel_open(ends.runtime, address, &(struct channel_options){0}, &channel));
    struct client_call *call = begin_probe(channel);
    channel_retire(channel);
    int fd = raw_accept(listener, 2000);
    CHECK(raw_greet_client(fd, NULL, 0));
    CHECK(raw_wait_for_frame(fd, NGHTTP2_HEADERS, 1, &frame, 2000));
    client_call_cancel(call);
    CHECK_CODE(client_call_finish(call), CODE_CANCELLED);
    client_call_free(call);
    CHECK(all_connections_close(&ends));
    close(fd);
    close(listener);
    ends_close(&ends);
}

int
main(void)
{
    calls_under_way_end_well_and_then_the_connection_closes();
    an_idle_or_unused_channel_closes_at_once();
    a_call_that_waits_for_the_connection_is_still_made();
    return check_report("test_rpc_retire");
}
