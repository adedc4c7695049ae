/* SPDX-License-Identifier: Apache-2.0 */
/* What the proxy does with malformed requests: frames by hand at both ends. */
#include "proxy_path.h"
#include "raw_peer.h"

/* What a client sends, and what the server behind gets. */
struct raw_path {
    struct path path;
    int listener, client, behind;
};

static void
raw_path_open(struct raw_path *raw, const char *content_length)
{
    static const struct csi_v1_identity handlers = {.probe = {answer_probe}};
    char address[96];
    struct raw_frame frame;
    struct buffer more AUTO(buffer_clear) = {0};
    path_open(&raw->path, &csi_v1_identity_service, &handlers);
    channel_close(raw->path.way.channel);
    ends_choose_address(address);
    raw->listener = raw_listen(address);
    succeed(channel_open(raw->path.front.runtime, address, &(struct channel_options){0},
                         &raw->path.way.channel));
    raw->client = raw_connect(raw->path.front.address);
    raw_send_preface(raw->client);
    if (content_length)
        raw_add_field(&more, "content-length", content_length);
    raw_send_request(raw->client, 1, "/csi.v1.Identity/Probe", &more, false);
    raw->behind = raw_accept(raw->listener, 2000);
    CHECK(raw_greet_client(raw->behind, NULL, 0));
    CHECK(raw_wait_for_frame(raw->behind, NGHTTP2_HEADERS, 1, &frame, 2000));
}

static void
raw_path_close(struct raw_path *raw)
{
    path_end(&raw->path);
    close(raw->client);
    close(raw->behind);
    close(raw->listener);
}

/* The frame that ends the request at the server behind: a reset, or the one with END_STREAM. */
static bool
request_ends_by_reset(struct raw_path *raw)
{
    struct raw_frame frame;
    while (raw_read_frame(raw->behind, &frame, 2000))
        if (frame.stream == 1 &&
            (frame.type == NGHTTP2_RST_STREAM || frame.flags & NGHTTP2_FLAG_END_STREAM))
            return frame.type == NGHTTP2_RST_STREAM;
    CHECK(!"the request has ended");
    return false;
}

static void
check_refused(struct raw_path *raw)
{
    struct raw_frame frame;
    CHECK(raw_wait_for_frame(raw->client, NGHTTP2_RST_STREAM, 1, &frame, 2000));
    CHECK_NUMBER(frame.payload[3], NGHTTP2_PROTOCOL_ERROR);
    CHECK(request_ends_by_reset(raw));
    raw_path_close(raw);
}

static void
malformed_trailers_do_not_complete_a_request(void)
{
    static const char *const bad[][2] = {
        {"Upper", "x"}, {":path", "/"}, {"connection", "close"}, {"x-key", "value "}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct raw_path raw;
        struct buffer block AUTO(buffer_clear) = {0};
        raw_path_open(&raw, NULL);
        raw_send_empty_message(raw.client, 1, false);
        raw_add_field(&block, bad[i][0], bad[i][1]);
        raw_send_frame(raw.client, NGHTTP2_HEADERS,
                       NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, block.bytes,
                       block.size);
        check_refused(&raw);
    }
}

static void
a_body_must_be_as_long_as_content_length_says(void)
{
    struct raw_path raw;
    raw_path_open(&raw, "6");
    raw_send_empty_message(raw.client, 1, true);
    check_refused(&raw);
    raw_path_open(&raw, "4");
    raw_send_empty_message(raw.client, 1, false);
    check_refused(&raw);
    raw_path_open(&raw, "5");
    raw_send_empty_message(raw.client, 1, true);
    CHECK(!request_ends_by_reset(&raw));
    raw_path_close(&raw);
}

int
main(void)
{
    malformed_trailers_do_not_complete_a_request();
    a_body_must_be_as_long_as_content_length_says();
    return check_report("test_rpc_proxy_malformed");
}
