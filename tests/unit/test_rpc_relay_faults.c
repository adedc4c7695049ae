/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/proxy/relay.c and a server behind that does not behave. */
#include <zlib.h>

#include "raw_server.h"
#include "relay_ends.h"

#define MAX_REPLY_BYTES 1000u

struct fault {
    struct relay_ends ends;
    char address[96];
    int listener;
    int fd; /* of the relay's connection, greeted */
    struct client_call *call;
};

/* One call has been relayed, and its request has come: stream 1 waits for what the test answers. */
static void
fault_begin(struct fault *fault, uint64_t timeout_ns, size_t max_reply_bytes, unsigned workers)
{
    struct raw_frame frame;
    ends_choose_address(fault->address);
    fault->listener = raw_listen(fault->address);
    relay_ends_open_with(&fault->ends, &relaying_handlers, fault->address,
                         &(struct channel_options){.max_message_bytes = max_reply_bytes}, workers);
    fault->ends.route.timeout_ns = timeout_ns;
    fault->call = begin_snapshot(fault->ends.front.channel);
    fault->fd = raw_accept(fault->listener, 2000);
    CHECK(fault->fd >= 0 && raw_greet_client(fault->fd, NULL, 0));
    CHECK(raw_wait_for_frame(fault->fd, NGHTTP2_DATA, 1, &frame, 2000));
}

static void
fault_open_with(struct fault *fault, uint64_t timeout_ns)
{
    fault_begin(fault, timeout_ns, MAX_REPLY_BYTES, 0);
}

static void
fault_open(struct fault *fault)
{
    fault_open_with(fault, 0);
}

static void
fault_end(struct fault *fault)
{
    client_call_free(fault->call);
    relay_ends_close(&fault->ends);
    CHECK_NUMBER(gate_count(&fault->ends.route.finished), 1);
    close(fault->fd);
    close(fault->listener);
}

/* The client got this code and a text with this part, and the target's name; the relay's end was told once. */
static void
fault_close(struct fault *fault, enum code code, const char *part)
{
    struct error *error AUTO(error_cleanup) = client_call_finish(fault->call);
    CHECK_TEXT(error_code_name(error ? error->code : CODE_OK), error_code_name(code));
    if (error && !(strstr(error->message, part) && strstr(error->message, fault->address)))
        CHECK_TEXT(error->message, part);
    CHECK_NUMBER(fault->ends.route.code, code);
    fault_end(fault);
}

/* ---- pieces of an answer ---- */

static void
send_head(int fd, const char *encoding)
{
    struct buffer block AUTO(buffer_clear) = {0};
    raw_add_field(&block, ":status", "200");
    raw_add_field(&block, "content-type", "application/grpc");
    if (encoding)
        raw_add_field(&block, "grpc-encoding", encoding);
    raw_send_frame(fd, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block.bytes, block.size);
}

static void
send_message(int fd, uint8_t flag, const void *bytes, size_t size)
{
    struct buffer message AUTO(buffer_clear) = {0};
    const uint8_t prefix[5] = {flag, 0, 0, (uint8_t)(size >> 8), (uint8_t)size};
    buffer_append(&message, prefix, sizeof prefix);
    buffer_append(&message, bytes, size);
    raw_send_frame(fd, NGHTTP2_DATA, 0, 1, message.bytes, message.size);
}

static void
send_ok(int fd)
{
    struct buffer block AUTO(buffer_clear) = {0};
    raw_add_field(&block, "grpc-status", "0");
    raw_send_frame(fd, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                   block.bytes, block.size);
}

/* Snapshot { snapshot_id = "s" source_volume_id = "d" } in a CreateSnapshotResponse. */
static const uint8_t good_reply[] = {0x0a, 6, 0x12, 1, 's', 0x1a, 1, 'd'};

/* ---- answers ---- */

static void
a_reply_that_cannot_be_decoded_is_an_internal_error(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    send_message(fault.fd, 0, "\x0a\x7f", 2);
    send_ok(fault.fd);
    fault_close(&fault, CODE_INTERNAL, "cannot be decoded");
}

static void
a_string_that_is_no_utf8_is_an_internal_error(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    send_message(fault.fd, 0, "\x0a\x03\x12\x01\xff", 5);
    send_ok(fault.fd);
    fault_close(&fault, CODE_INTERNAL, "not valid UTF-8");
}

static void
a_string_with_a_nul_is_not_the_clients_fault(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    send_message(fault.fd, 0, "\x0a\x03\x12\x01\0", 5);
    send_ok(fault.fd);
    fault_close(&fault, CODE_INTERNAL, "NUL");
}

static void
a_second_message_is_an_internal_error(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    send_message(fault.fd, 0, good_reply, sizeof good_reply);
    send_message(fault.fd, 0, good_reply, sizeof good_reply);
    send_ok(fault.fd);
    fault_close(&fault, CODE_INTERNAL, "more than one message");
}

static void
an_ok_without_a_message_is_an_internal_error(void)
{
    struct fault fault;
    fault_open(&fault);
    raw_send_trailers_only(fault.fd, 1, "0");
    fault_close(&fault, CODE_INTERNAL, "without a message");
}

static void
a_message_that_breaks_off_is_an_internal_error(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    raw_send_frame(fault.fd, NGHTTP2_DATA, 0, 1, "\0\0\0\0\x09half", 9);
    send_ok(fault.fd);
    fault_close(&fault, CODE_INTERNAL, "in the middle of a message");
}

static void
a_reply_that_is_too_large_is_refused(void)
{
    static uint8_t large[MAX_REPLY_BYTES + 1];
    struct raw_frame frame;
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    send_message(fault.fd, 0, large, sizeof large);
    CHECK(raw_wait_for_frame(fault.fd, NGHTTP2_RST_STREAM, 1, &frame, 2000));
    fault_close(&fault, CODE_RESOURCE_EXHAUSTED, "larger than the limit of 1000");
}

static void
an_end_without_a_status_is_an_internal_error(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    raw_send_frame(fault.fd, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0);
    fault_close(&fault, CODE_INTERNAL, "without a grpc-status");
}

static void
an_answer_that_is_no_grpc_says_so(void)
{
    struct fault fault;
    struct buffer block AUTO(buffer_clear) = {0};
    fault_open(&fault);
    raw_add_field(&block, ":status", "503");
    raw_add_field(&block, "content-type", "text/html");
    raw_send_frame(fault.fd, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                   block.bytes, block.size);
    fault_close(&fault, CODE_UNAVAILABLE, "HTTP status 503");
}

static void
a_status_that_is_none_is_unknown(void)
{
    struct fault fault;
    fault_open(&fault);
    raw_send_trailers_only(fault.fd, 1, "many");
    fault_close(&fault, CODE_UNKNOWN, "an invalid grpc-status");
}

static void
a_reset_becomes_a_status(void)
{
    static const uint8_t internal[] = {0, 0, 0, NGHTTP2_INTERNAL_ERROR};
    struct fault fault;
    fault_open(&fault);
    raw_send_frame(fault.fd, NGHTTP2_RST_STREAM, 0, 1, internal, sizeof internal);
    fault_close(&fault, CODE_INTERNAL, "INTERNAL_ERROR");
}

static void
a_server_that_hangs_up_is_unavailable(void)
{
    struct fault fault;
    fault_open(&fault);
    send_head(fault.fd, NULL);
    shutdown(fault.fd, SHUT_RDWR);
    fault_close(&fault, CODE_UNAVAILABLE, "closed the connection");
}

static void
a_server_that_never_answers_is_given_up_in_time(void)
{
    struct raw_frame frame;
    struct fault fault;
    fault_open_with(&fault, 300 * MS);
    CHECK(raw_wait_for_frame(fault.fd, NGHTTP2_RST_STREAM, 1, &frame, 2000));
    fault_close(&fault, CODE_DEADLINE_EXCEEDED, "no answer before the deadline");
}

/* ---- what is no fault ---- */

static void
a_refused_stream_is_tried_again(void)
{
    static const uint8_t refused[] = {0, 0, 0, NGHTTP2_REFUSED_STREAM};
    struct raw_frame frame;
    struct fault fault;
    fault_open(&fault);
    raw_send_frame(fault.fd, NGHTTP2_RST_STREAM, 0, 1, refused, sizeof refused);
    CHECK(raw_wait_for_frame(fault.fd, NGHTTP2_DATA, 3, &frame, 2000));
    raw_send_trailers_only(fault.fd, 3, "5");
    struct error *error AUTO(error_cleanup) = client_call_finish(fault.call);
    CHECK(error && error->code == CODE_NOT_FOUND);
    fault_end(&fault);
}

static size_t
gzip(const void *bytes, size_t size, uint8_t *out, size_t room)
{
    z_stream stream = {.next_in = (void *)bytes,
                       .avail_in = (unsigned)size,
                       .next_out = out,
                       .avail_out = (unsigned)room};
    CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    size_t made = room - stream.avail_out;
    deflateEnd(&stream);
    return made;
}

static void
a_compressed_reply_is_inflated(void)
{
    uint8_t packed[100];
    size_t size = gzip(good_reply, sizeof good_reply, packed, sizeof packed);
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotResponse *reply;
    struct fault fault;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    fault_open(&fault);
    send_head(fault.fd, "gzip");
    send_message(fault.fd, 1, packed, size);
    send_ok(fault.fd);
    succeed(client_call_recv(fault.call, &arena, &reply));
    CHECK(reply && reply->snapshot);
    CHECK_TEXT(reply->snapshot->snapshot_id, "s");
    CHECK_TEXT(reply->snapshot->source_volume_id, ID_PREFIX "d");
    fault_close(&fault, CODE_OK, "");
}

/* ---- large answers ---- */

/* The limit is for the header and the trailers together, in frames that each are within it. */
static void
trailers_that_are_too_large_are_refused(void)
{
    char value[101];
    struct buffer block AUTO(buffer_clear) = {0};
    struct fault fault;
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    raw_add_field(&block, "grpc-status", "0");
    for (unsigned i = 0; i < 600; i++) /* 133 bytes each, by HTTP/2's rule */
        raw_add_field(&block, "x", value);
    fault_open(&fault);
    send_head(fault.fd, NULL);
    send_message(fault.fd, 0, good_reply, sizeof good_reply);
    for (size_t at = 0; at < block.size; at += 16384) {
        size_t size = block.size - at < 16384 ? block.size - at : 16384;
        uint8_t flags = at + size == block.size ? NGHTTP2_FLAG_END_HEADERS : 0;
        raw_send_frame(fault.fd, at ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
                       at ? flags : flags | NGHTTP2_FLAG_END_STREAM, 1, block.bytes + at, size);
    }
    fault_close(&fault, CODE_RESOURCE_EXHAUSTED, "headers are too large");
}

struct blocker {
    struct work work; /* first */
    struct loop *loop;
    struct gate begun;
    struct gate may_end;
};

static void
block(struct work *work)
{
    struct blocker *blocker = (struct blocker *)work;
    gate_pass(&blocker->begun);
    gate_wait(&blocker->may_end, 1);
    gate_pass(&blocker->begun);
}

static void
submit_blocker(void *argument)
{
    struct blocker *blocker = argument;
    CHECK(loop_submit_work(blocker->loop, &blocker->work));
    loop_note_work_done(blocker->loop); /* no call waits for it */
}

/* While the only worker is busy, a large reply waits for it, and a small one does not. */
static void
a_large_reply_is_decoded_by_a_worker(void)
{
    enum { LARGE = 100000, ID = LARGE - 8 };
    static uint8_t large[5 + LARGE] = {0, 0, LARGE >> 16, (LARGE >> 8) & 255, LARGE & 255};
    struct blocker blocker = {.work.run = block, .begun = GATE_INIT, .may_end = GATE_INIT};
    struct arena arena AUTO(arena_clear);
    Csi__V1__CreateSnapshotResponse *reply;
    struct fault fault;
    /* Snapshot { snapshot_id = "sss..." } */
    const uint8_t head[] = {
        0x0a, 0x80 | ((ID + 4) & 127), 0x80 | ((ID + 4) >> 7 & 127), (ID + 4) >> 14,
        0x12, 0x80 | (ID & 127),       0x80 | (ID >> 7 & 127),       ID >> 14};
    memset(large + 5, 's', LARGE);
    memcpy(large + 5, head, sizeof head);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    fault_begin(&fault, 0, 2 * LARGE, 1);
    blocker.loop = runtime_loop(fault.ends.front.runtime);
    loop_run(blocker.loop, submit_blocker, &blocker);
    CHECK(gate_wait(&blocker.begun, 1));
    send_head(fault.fd, NULL);
    for (size_t at = 0; at < sizeof large; at += 16384)
        raw_send_frame(fault.fd, NGHTTP2_DATA, 0, 1, large + at,
                       sizeof large - at < 16384 ? sizeof large - at : 16384);
    send_ok(fault.fd);
    sleep_ms(100);
    CHECK_NUMBER(gate_count(&fault.ends.route.finished), 0);
    gate_pass(&blocker.may_end);
    succeed(client_call_recv(fault.call, &arena, &reply));
    CHECK(reply && reply->snapshot && strlen(reply->snapshot->snapshot_id) == ID);
    CHECK(gate_wait(&blocker.begun, 2));
    fault_close(&fault, CODE_OK, "");
}

int
main(void)
{
    a_reply_that_cannot_be_decoded_is_an_internal_error();
    a_string_that_is_no_utf8_is_an_internal_error();
    a_string_with_a_nul_is_not_the_clients_fault();
    a_second_message_is_an_internal_error();
    an_ok_without_a_message_is_an_internal_error();
    a_message_that_breaks_off_is_an_internal_error();
    a_reply_that_is_too_large_is_refused();
    an_end_without_a_status_is_an_internal_error();
    an_answer_that_is_no_grpc_says_so();
    a_status_that_is_none_is_unknown();
    a_reset_becomes_a_status();
    a_server_that_hangs_up_is_unavailable();
    a_server_that_never_answers_is_given_up_in_time();
    a_refused_stream_is_tried_again();
    a_compressed_reply_is_inflated();
    trailers_that_are_too_large_are_refused();
    a_large_reply_is_decoded_by_a_worker();
    return check_report("test_rpc_relay_faults");
}
