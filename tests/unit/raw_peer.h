/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that says HTTP/2 frames one by one, for what a well-behaved peer never does: as a client
 * of our server, or as a server of our channel.
 */
#ifndef UNIT_RAW_PEER_H
#define UNIT_RAW_PEER_H

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "rpc/http2/address.h"
#include "rpc/http2/socket.h"

#define RAW_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define RAW_HEAD_BYTES 9u

struct raw_frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    size_t size;
    uint8_t payload[16384];
};

/* ---- sockets ---- */

static inline int
raw_open_socket(const char *text, int (*use)(int, const struct sockaddr *, socklen_t))
{
    struct address address;
    struct sockaddr_un name;
    struct error *error = address_parse(text, &address);
    socklen_t size = error ? 0 : socket_name_of_unix(&address, &name);
    error_free(error);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || use(fd, (struct sockaddr *)&name, size) != 0) {
        perror(text);
        abort();
    }
    return fd;
}

static inline int
raw_connect(const char *address)
{
    return raw_open_socket(address, connect);
}

static inline int
raw_listen(const char *address)
{
    int fd = raw_open_socket(address, bind);
    if (listen(fd, 8) != 0)
        abort();
    return fd;
}

/* -1: nobody came in time. */
static inline int
raw_accept(int listener, int timeout_ms)
{
    struct pollfd watched = {listener, POLLIN, 0};
    return poll(&watched, 1, timeout_ms) == 1 ? accept(listener, NULL, NULL) : -1;
}

/* The peer may have hung up: then nothing more is said. */
static inline void
raw_send(int fd, const void *bytes, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        bytes = (const uint8_t *)bytes + sent;
        size -= (size_t)sent;
    }
}

/* ---- frames out ---- */

static inline void
raw_add_frame(struct buffer *out, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
              size_t size)
{
    const uint8_t head[RAW_HEAD_BYTES] = {
        (uint8_t)(size >> 16),
        (uint8_t)(size >> 8),
        (uint8_t)size,
        type,
        flags,
        (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16),
        (uint8_t)(stream >> 8),
        (uint8_t)stream,
    };
    buffer_append(out, head, sizeof head);
    buffer_append(out, payload, size);
}

static inline void
raw_send_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
               size_t size)
{
    struct buffer out AUTO(buffer_clear) = {0};
    raw_add_frame(&out, type, flags, stream, payload, size);
    raw_send(fd, out.bytes, out.size);
}

/* HPACK: a literal that is never indexed, without Huffman. Texts are shorter than 127 bytes. */
static inline void
raw_add_field(struct buffer *block, const char *name, const char *value)
{
    buffer_append_byte(block, 0x10);
    buffer_append_byte(block, (uint8_t)strlen(name));
    buffer_append_text(block, name);
    buffer_append_byte(block, (uint8_t)strlen(value));
    buffer_append_text(block, value);
}

static inline void
raw_send_settings(int fd, const nghttp2_settings_entry *entries, size_t count)
{
    struct buffer payload AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t value = entries[i].value;
        const uint8_t entry[] = {
            (uint8_t)(entries[i].settings_id >> 8),
            (uint8_t)entries[i].settings_id,
            (uint8_t)(value >> 24),
            (uint8_t)(value >> 16),
            (uint8_t)(value >> 8),
            (uint8_t)value,
        };
        buffer_append(&payload, entry, sizeof entry);
    }
    raw_send_frame(fd, NGHTTP2_SETTINGS, 0, 0, payload.bytes, payload.size);
}

/* Until it comes the peer's own SETTINGS, such as a wider window, are not in force. */
static inline void
raw_acknowledge_settings(int fd)
{
    raw_send_frame(fd, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
}

/* What a client says first. */
static inline void
raw_send_preface(int fd)
{
    raw_send(fd, RAW_PREFACE, sizeof RAW_PREFACE - 1);
    raw_send_settings(fd, NULL, 0);
}

/* The head of a gRPC request, with `more` (may be NULL) fields behind it. */
static inline void
raw_send_request(int fd, uint32_t stream, const char *path, const struct buffer *more, bool end)
{
    struct buffer block AUTO(buffer_clear) = {0};
    raw_add_field(&block, ":method", "POST");
    raw_add_field(&block, ":scheme", "http");
    raw_add_field(&block, ":path", path);
    raw_add_field(&block, ":authority", "localhost");
    raw_add_field(&block, "content-type", "application/grpc");
    raw_add_field(&block, "te", "trailers");
    if (more)
        buffer_append(&block, more->bytes, more->size);
    raw_send_frame(fd, NGHTTP2_HEADERS,
                   (uint8_t)(NGHTTP2_FLAG_END_HEADERS | (end ? NGHTTP2_FLAG_END_STREAM : 0)),
                   stream, block.bytes, block.size);
}

/* An empty gRPC message. */
static inline void
raw_send_empty_message(int fd, uint32_t stream, bool end)
{
    static const uint8_t message[5];
    raw_send_frame(fd, NGHTTP2_DATA, end ? NGHTTP2_FLAG_END_STREAM : 0, stream, message,
                   sizeof message);
}

static inline void
raw_send_window(int fd, uint32_t stream, uint32_t size)
{
    const uint8_t payload[] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                               (uint8_t)size};
    raw_send_frame(fd, NGHTTP2_WINDOW_UPDATE, 0, stream, payload, sizeof payload);
}

/* ---- frames in ---- */

/* False: the peer hung up, or not so many bytes came in time. */
static inline bool
raw_receive(int fd, void *bytes, size_t size, int timeout_ms)
{
    while (size) {
        struct pollfd watched = {fd, POLLIN, 0};
        if (poll(&watched, 1, timeout_ms) != 1)
            return false;
        ssize_t got = recv(fd, bytes, size, 0);
        if (got <= 0)
            return false;
        bytes = (uint8_t *)bytes + got;
        size -= (size_t)got;
    }
    return true;
}

static inline bool
raw_read_frame(int fd, struct raw_frame *frame, int timeout_ms)
{
    uint8_t head[RAW_HEAD_BYTES];
    if (!raw_receive(fd, head, sizeof head, timeout_ms))
        return false;
    frame->size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    frame->type = head[3];
    frame->flags = head[4];
    frame->stream =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    return frame->size <= sizeof frame->payload &&
           raw_receive(fd, frame->payload, frame->size, timeout_ms);
}

/* Reads until such a frame of the stream has come. */
static inline bool
raw_wait_for_frame(int fd, uint8_t type, uint32_t stream, struct raw_frame *frame, int timeout_ms)
{
    while (raw_read_frame(fd, frame, timeout_ms))
        if (frame->type == type && frame->stream == stream)
            return true;
    return false;
}

/* A server's first words, SETTINGS, once the client has said its own. */
static inline bool
raw_greet_client(int fd, const nghttp2_settings_entry *entries, size_t count)
{
    char preface[sizeof RAW_PREFACE - 1];
    if (!raw_receive(fd, preface, sizeof preface, 2000))
        return false;
    raw_send_settings(fd, entries, count);
    raw_acknowledge_settings(fd);
    return true;
}

/* The value of a field of a HEADERS frame, the first of a connection, in `out`; "" without it. Gives the field's flags
   (NGHTTP2_NV_FLAG_*). */
static inline uint8_t
raw_find_field(const struct raw_frame *frame, const char *name, char *out, size_t room)
{
    nghttp2_hd_inflater *inflater;
    const uint8_t *next = frame->payload;
    size_t left = frame->size;
    uint8_t found_flags = 0;
    out[0] = '\0';
    if (nghttp2_hd_inflate_new(&inflater) != 0)
        abort();
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, next, left, 1);
        if (used < 0)
            break;
        next += used;
        left -= (size_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) && field.namelen == strlen(name) &&
            memcmp(field.name, name, field.namelen) == 0) {
            snprintf(out, room, "%.*s", (int)field.valuelen, (const char *)field.value);
            found_flags = field.flags;
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) || (!left && !(flags & NGHTTP2_HD_INFLATE_EMIT)))
            break;
    }
    nghttp2_hd_inflate_del(inflater);
    return found_flags;
}

#endif
