/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of JSON-RPC: see json_rpc.h. The socket never blocks; poll(2) waits until the deadline.
 */
#include "oim/json_rpc.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "oim/accelerator.h"

#define PIECE_BYTES 65536
#define NS_PER_MS UINT64_C(1000000)
/* Between attempts while the peer's backlog is full. */
#define CROWDED_PAUSE_MS 10

void
json_rpc_close(struct json_rpc *rpc)
{
    files_close(&rpc->fd);
    json_rpc_reader_clear(&rpc->reader);
}

static struct error *
too_late(const struct json_rpc *rpc)
{
    return error_new(CODE_DEADLINE_EXCEEDED, "no answer from %s in time", rpc->socket);
}

static struct error *
lost(const struct json_rpc *rpc, const char *why)
{
    return error_new(CODE_UNAVAILABLE, "the connection to %s was lost (%s): try again", rpc->socket,
                     why);
}

/* ---- connecting ---- */

static struct error *
explain(const struct json_rpc *rpc, int errnum)
{
    if (errnum == ENOENT || errnum == ECONNREFUSED)
        return error_new(
            CODE_UNAVAILABLE,
            "nothing listens at %s: start SPDK's target, or give its socket with --spdk",
            rpc->socket);
    return error_from_errno(errnum, "connect to %s", rpc->socket);
}

static struct error *
try_to_connect(struct json_rpc *rpc, const struct sockaddr_un *name)
{
    const struct timespec pause = {.tv_nsec = CROWDED_PAUSE_MS * NS_PER_MS};
    while (connect(rpc->fd, (const struct sockaddr *)name, sizeof *name) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return explain(rpc, errno);
        if (clock_now_ns() >= rpc->deadline_ns)
            return too_late(rpc);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

struct error *
json_rpc_connect(struct json_rpc *rpc, const char *socket_path, uint64_t deadline_ns)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *rpc = (struct json_rpc){.fd = -1, .socket = socket_path, .deadline_ns = deadline_ns};
    if (strlen(socket_path) >= sizeof name.sun_path)
        return error_new(CODE_INVALID_ARGUMENT, "the path of the socket %s is too long",
                         socket_path);
    memcpy(name.sun_path, socket_path, strlen(socket_path));
    rpc->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (rpc->fd < 0)
        return error_from_errno(errno, "make a socket");
    return try_to_connect(rpc, &name);
}

/* ---- asking ---- */

static struct error *
wait_for(const struct json_rpc *rpc, short events)
{
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= rpc->deadline_ns)
            return too_late(rpc);
        struct pollfd place = {.fd = rpc->fd, .events = events};
        uint64_t left_ms = (rpc->deadline_ns - now_ns) / NS_PER_MS + 1;
        int ready = poll(&place, 1, left_ms < 60000 ? (int)left_ms : 60000);
        if (ready > 0)
            return NULL;
        if (ready < 0 && errno != EINTR)
            return error_from_errno(errno, "wait for %s", rpc->socket);
    }
}

static struct error *
send_all(const struct json_rpc *rpc, const struct buffer *request)
{
    for (size_t done = 0; done < request->size;) {
        ssize_t sent = send(rpc->fd, request->bytes + done, request->size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return lost(rpc, strerror(errno));
        struct error *error = sent < 0 ? wait_for(rpc, POLLOUT) : NULL;
        if (error)
            return error;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return NULL;
}

static struct error *
receive_all(struct json_rpc *rpc)
{
    while (!rpc->reader.is_whole) {
        uint8_t piece[PIECE_BYTES];
        struct error *error = wait_for(rpc, POLLIN);
        if (error)
            return error;
        ssize_t got = recv(rpc->fd, piece, sizeof piece, 0);
        if (got == 0)
            return lost(rpc, "the peer closed it");
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return lost(rpc, strerror(errno));
        error = got > 0 ? json_rpc_reader_add(&rpc->reader, piece, (size_t)got) : NULL;
        if (error)
            return error_wrap(error, "at %s", rpc->socket);
    }
    return NULL;
}

static void
print_request(struct buffer *out, int64_t id, const char *method, const char *params)
{
    buffer_print(out, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":", (long long)id);
    json_append_string(out, method, strlen(method));
    if (params)
        buffer_print(out, ",\"params\":%s", params);
    buffer_append_byte(out, '}');
}

struct error *
json_rpc_ask(struct json_rpc *rpc, const char *method, const char *params,
             struct json_rpc_reply *reply)
{
    struct buffer request AUTO(buffer_clear) = {0};
    *reply = (struct json_rpc_reply){0};
    if (rpc->fd < 0)
        return lost(rpc, "earlier");
    print_request(&request, ++rpc->last_id, method, params);
    struct error *error = send_all(rpc, &request);
    if (!error)
        error = receive_all(rpc);
    if (!error)
        error = error_wrap(json_rpc_reader_take(&rpc->reader, rpc->last_id, reply), "at %s",
                           rpc->socket);
    if (error)
        json_rpc_close(rpc);
    return error_wrap(error, "%s", method);
}
