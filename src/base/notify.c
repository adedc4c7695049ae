/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's notification socket: see notify.h.
 *
 * libsystemd was rejected because the protocol is one datagram. The variables stay in our
 * environment; process.c and child_process.c leave them out of that of programs.
 */
#include "base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SEND_SECONDS 5

/* A path, or @NAME for a socket in the abstract namespace, where a NUL replaces the @. */
static struct error *
read_address(const char *text, struct notify *out)
{
    size_t size = strlen(text);
    if (size < 2 || !strchr("/@", text[0]))
        return error_new(CODE_INVALID_ARGUMENT, "\"%.100s\" is neither /PATH nor @NAME", text);
    if (size >= sizeof out->address.sun_path)
        return error_new(CODE_INVALID_ARGUMENT, "it has %zu characters, %zu at most are possible",
                         size, sizeof out->address.sun_path - 1);
    out->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->address.sun_path, text, size);
    if (text[0] == '@')
        out->address.sun_path[0] = '\0';
    out->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    return NULL;
}

static struct error *
read_number(const char *name, uint64_t *out)
{
    const char *text = getenv(name);
    char *end;
    if (!text)
        return NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        return error_new(CODE_INVALID_ARGUMENT, "$%s is not a number: \"%.100s\"", name, text);
    return NULL;
}

/* $WATCHDOG_PID tells whose watchdog it is: a program between the manager and us may pass it on. */
static struct error *
read_watchdog(struct notify *out)
{
    uint64_t pid = (uint64_t)getpid(), watchdog_us = 0;
    struct error *error = read_number("WATCHDOG_USEC", &watchdog_us);
    if (!error)
        error = read_number("WATCHDOG_PID", &pid);
    if (!error && pid == (uint64_t)getpid())
        out->watchdog_us = watchdog_us;
    return error;
}

static struct error *
open_socket(struct notify *out)
{
    struct timeval patience = {.tv_sec = SEND_SECONDS};
    out->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (out->fd < 0 ||
        setsockopt(out->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
        return error_from_errno(errno, "make a socket for the service manager");
    return NULL;
}

struct error *
notify_open(struct notify *out)
{
    const char *text = getenv("NOTIFY_SOCKET");
    *out = NOTIFY_NONE;
    if (!text || !text[0])
        return NULL;
    struct error *error = error_wrap(read_address(text, out), "$NOTIFY_SOCKET");
    if (!error)
        error = read_watchdog(out);
    return error ? error : open_socket(out);
}

static ssize_t
send_lines(const struct notify *notify, const char *lines, int flags)
{
    return sendto(notify->fd, lines, strlen(lines), flags | MSG_NOSIGNAL,
                  (const struct sockaddr *)&notify->address, notify->address_size);
}

struct error *
notify_send(const struct notify *notify, const char *lines)
{
    if (notify->fd < 0 || send_lines(notify, lines, 0) >= 0)
        return NULL;
    return error_from_errno(errno, "tell the service manager");
}

void
notify_ping(const struct notify *notify)
{
    if (notify->fd >= 0)
        send_lines(notify, "WATCHDOG=1", MSG_DONTWAIT);
}

void
notify_close(struct notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    *notify = NOTIFY_NONE;
}
