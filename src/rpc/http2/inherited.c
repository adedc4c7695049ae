/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of a service manager: see inherited.h. libsystemd was rejected because the protocol is
 * two variables.
 */
#include "rpc/http2/inherited.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

#define FIRST 3

/* A number without anything behind it; -1 if it is none. */
static long
read_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    long number = strtol(text, &end, 10);
    return *end ? -1 : number;
}

/* A program between the manager and us may pass the variables on: they are not ours then. */
static bool
is_for_us(void)
{
    return read_number("LISTEN_PID") == (long)getpid();
}

static unsigned
count_sockets(void)
{
    long count = is_for_us() ? read_number("LISTEN_FDS") : 0;
    return count > 0 && count <= INHERITED_MOST ? (unsigned)count : 0;
}

static bool
is_listening(int fd)
{
    int type = 0, is_on = 0;
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return false;
    size = sizeof is_on;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_on, &size) == 0 && is_on;
}

struct error *
inherited_open(void)
{
    if (is_for_us() && getenv("LISTEN_FDS") && !count_sockets() && read_number("LISTEN_FDS") != 0)
        return error_new(CODE_INVALID_ARGUMENT,
                         "$LISTEN_FDS is \"%.20s\", not a number from 0 to %d",
                         getenv("LISTEN_FDS"), INHERITED_MOST);
    for (int fd = FIRST; fd < FIRST + (int)count_sockets(); fd++)
        if (!is_listening(fd) || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
            return error_new(CODE_INVALID_ARGUMENT,
                             "the service manager passes descriptor %d, which is not a listening "
                             "stream socket: the .socket unit needs ListenStream= and Accept=no",
                             fd);
    return NULL;
}

/* Its number stays in use, by something that does not listen. */
static int
take(int fd)
{
    int taken = fcntl(fd, F_DUPFD_CLOEXEC, FIRST + INHERITED_MOST);
    int nothing AUTO(files_close) = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (taken >= 0 && nothing >= 0)
        dup3(nothing, fd, O_CLOEXEC);
    return taken;
}

int
inherited_take(const struct sockaddr *name, socklen_t size)
{
    for (int fd = FIRST; fd < FIRST + (int)count_sockets(); fd++) {
        struct sockaddr_storage there = {0};
        socklen_t there_size = sizeof there;
        if (is_listening(fd) && getsockname(fd, (struct sockaddr *)&there, &there_size) == 0 &&
            there_size == size && memcmp(&there, name, size) == 0)
            return take(fd);
    }
    return -1;
}

struct error *
inherited_check(void)
{
    for (int fd = FIRST; fd < FIRST + (int)count_sockets(); fd++)
        if (is_listening(fd))
            return error_new(CODE_INVALID_ARGUMENT,
                             "the service manager passes a socket (descriptor %d) whose address is "
                             "not served: ListenStream= of the .socket unit and --endpoint, "
                             "--listen or --http must be the same",
                             fd);
    return NULL;
}
