/* SPDX-License-Identifier: Apache-2.0 */
/* A server that says HTTP/2 frames one by one to one client, which is a channel of ours. */
#ifndef UNIT_RAW_SERVER_H
#define UNIT_RAW_SERVER_H

#include "raw_peer.h"
#include "rpc_ends.h"

struct raw_server {
    struct ends ends;
    int listener;
    int fd; /* of the one client, greeted */
};

/* Only the client's side of the ends is used. */
static inline void
raw_server_open(struct raw_server *server)
{
    *server = (struct raw_server){.fd = -1};
    ends_choose_address(server->ends.address);
    ends_open_runtime(&server->ends, (struct runtime_options){0});
    server->listener = raw_listen(server->ends.address);
    succeed(channel_open(server->ends.runtime, server->ends.address, &(struct channel_options){0},
                         &server->ends.channel));
}

static inline void
raw_server_greet(struct raw_server *server, const nghttp2_settings_entry *entries, size_t count)
{
    server->fd = raw_accept(server->listener, 2000);
    CHECK(server->fd >= 0 && raw_greet_client(server->fd, entries, count));
}

static inline void
raw_server_close(struct raw_server *server)
{
    close(server->fd);
    close(server->listener);
    ends_close(&server->ends);
}

static inline void
raw_send_trailers_only(int fd, uint32_t stream, const char *status)
{
    struct buffer block AUTO(buffer_clear) = {0};
    raw_add_field(&block, ":status", "200");
    raw_add_field(&block, "content-type", "application/grpc");
    raw_add_field(&block, "grpc-status", status);
    raw_send_frame(fd, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, stream,
                   block.bytes, block.size);
}

#endif
