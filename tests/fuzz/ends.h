/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets and frames for the targets that talk to a whole server or channel. */
#ifndef FUZZ_ENDS_H
#define FUZZ_ENDS_H

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/log.h"
#include "input.h"
#include "require.h"
#include "rpc/http2/socket.h"
#include "rpc/runtime/runtime_internal.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};

/* An address that no other process uses, and that leaves no file. */
static inline void
ends_choose_address(char address[static 64], const char *name)
{
    snprintf(address, 64, "unix-abstract:skycap-fuzz-%s-%d", name, (int)getpid());
}

static inline int
ends_open_socket(const char *text, int (*use)(int, const struct sockaddr *, socklen_t))
{
    struct address address;
    struct sockaddr_un name;
    struct timeval limit = {.tv_sec = 10};
    REQUIRE(!address_parse(text, &address));
    socklen_t size = socket_name_of_unix(&address, &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && use(fd, (struct sockaddr *)&name, size) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}

/* The peer may hang up in the middle. */
static inline void
ends_send(int fd, const void *bytes, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue; /* libFuzzer's alarm */
        if (sent <= 0)
            return;
        bytes = (const uint8_t *)bytes + sent;
        size -= (size_t)sent;
    }
}

/* Until the peer hangs up, which it must. */
static inline void
ends_read_all(int fd)
{
    static uint8_t ignored[65536];
    ssize_t got;
    do {
        got = recv(fd, ignored, sizeof ignored, 0);
    } while (got > 0 || (got < 0 && errno == EINTR));
    REQUIRE(got == 0 || errno == ECONNRESET);
}

static inline void
ends_add_frame(struct buffer *out, uint8_t type, uint8_t flags, uint8_t stream,
               const uint8_t *payload, size_t size)
{
    const uint8_t head[] = {
        (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size, type, flags, 0, 0, 0, stream};
    buffer_append(out, head, sizeof head);
    buffer_append(out, payload, size);
}

/*
 * What an input says: raw bytes, or frames whose lengths are right so that a mutation reaches what
 * is inside. A frame is type, flags, stream, two bytes of length, payload.
 */
static inline void
ends_render(struct input *input, bool raw, struct buffer *out)
{
    size_t got;
    if (raw) {
        const uint8_t *rest = input_bytes(input, input->size, &got);
        buffer_append(out, rest, got);
        return;
    }
    while (input->size) {
        uint8_t type = input_byte(input), flags = input_byte(input), stream = input_byte(input);
        size_t size = (size_t)input_byte(input) << 8 | input_byte(input);
        const uint8_t *payload = input_bytes(input, size, &got);
        ends_add_frame(out, type, flags, stream, payload, got);
    }
}

#endif
