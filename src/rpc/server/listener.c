/* SPDX-License-Identifier: Apache-2.0 */
/* Listening on a unix or TCP address, and accepting connections: see listener.h. */
#include "rpc/server/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/denial.h"
#include "base/memory.h"
#include "rpc/http2/inherited.h"
#include "rpc/http2/socket.h"

#define ACCEPTS_PER_TURN 64
#define RETRY_NS 100000000u

/* ---- unix sockets ---- */

/* Does a process serve the socket? If it cannot be determined, assume so. */
static bool
is_served(const struct sockaddr_un *name, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    int failed = connect(fd, (const struct sockaddr *)name, size);
    bool served = failed == 0 || errno == EAGAIN;
    close(fd);
    return served;
}

/*
 * Removes the socket file that a crashed server left. Refuses a file that is not a socket or is in
 * use.
 */
static struct error *
remove_stale_socket(const struct sockaddr_un *name, socklen_t size)
{
    struct stat found;
    if (name->sun_path[0] == '\0' || lstat(name->sun_path, &found) != 0)
        return NULL;
    if (!S_ISSOCK(found.st_mode))
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s exists and is not a socket: remove it or choose another path",
                         name->sun_path);
    if (is_served(name, size))
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s is in use by another process: stop it or choose another path",
                         name->sun_path);
    if (unlink(name->sun_path) != 0)
        return error_from_errno(errno, "remove the stale socket %s", name->sun_path);
    return NULL;
}

static struct error *
cannot_bind(const char *path, int failed)
{
    struct error *error = error_from_errno(failed, "listen on %s", path);
    const char *slash = strrchr(path, '/');
    if (failed == ENOENT && slash)
        return error_advise(error,
                            "make the directory %.*s first, or give another path with "
                            "--endpoint",
                            (int)(slash - path), path);
    if (failed == EACCES && geteuid() != 0)
        return error_advise(error, "without root, give a path in a directory of your own with "
                                   "--endpoint");
    return denial_explain(error, failed);
}

/*
 * The socket file has a restrictive mode from the start, so that nobody can connect between bind
 * and chmod.
 */
static struct error *
bind_unix(int fd, const struct address *address, unsigned mode)
{
    struct sockaddr_un name;
    socklen_t size = socket_name_of_unix(address, &name);
    struct error *error = remove_stale_socket(&name, size);
    if (error)
        return error;
    bool has_file = name.sun_path[0] != '\0';
    /* On Linux, the mode of an unbound socket, minus the umask, becomes the mode of its file. */
    if (has_file)
        fchmod(fd, 0600);
    if (bind(fd, (struct sockaddr *)&name, size) != 0)
        return cannot_bind(address->path, errno);
    if (has_file && chmod(name.sun_path, mode) != 0)
        return error_from_errno(errno, "set the mode of %s", name.sun_path);
    return NULL;
}

/* The mode of an inherited socket's file is what the service manager has given it. */
static bool
take_inherited(const struct address *address, struct listeners *out)
{
    struct sockaddr_un name;
    socklen_t size = socket_name_of_unix(address, &name);
    int fd = inherited_take((const struct sockaddr *)&name, size);
    *out = (struct listeners){.items = {{fd, *address, true}}, .count = 1};
    return fd >= 0;
}

static struct error *
open_unix(const struct address *address, unsigned mode, struct listeners *out)
{
    if (take_inherited(address, out))
        return NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_from_errno(errno, "create a socket");
    struct error *error = bind_unix(fd, address, mode);
    if (!error && listen(fd, SOCKET_BACKLOG) != 0)
        error = error_from_errno(errno, "listen on %s", address->path);
    if (error)
        close(fd);
    else
        *out = (struct listeners){.items = {{fd, *address, false}}, .count = 1};
    return error;
}

/* ---- accepting ---- */

static void on_ready(uv_poll_t *poll, int status, int events);

static void
resume_accepting(struct timer *timer)
{
    struct listener *listener = CONTAINER_OF(timer, struct listener, retry);
    uv_poll_start(&listener->poll, UV_READABLE, on_ready);
}

/* Out of descriptors: the socket stays readable, so polling on would only spin. */
static void
pause_accepting(struct listener *listener)
{
    struct loop *loop = listener->loop;
    log_warn(loop->log, "cannot accept connections for now",
             LOG_TEXT("error", strerrordesc_np(errno)));
    uv_poll_stop(&listener->poll);
    loop_arm(loop, &listener->retry, timers_now() + RETRY_NS);
}

static void
on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct listener *listener = poll->data;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->accepted(listener, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(listener);
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

/* ---- open and close ---- */

static struct listener *
new_listener(const struct listener *like, const struct listening_socket *socket)
{
    struct listener *listener = memory_new(sizeof *listener);
    *listener = *like;
    listener->address = socket->address;
    listener->fd = socket->fd;
    listener->is_inherited = socket->is_inherited;
    listener->references = 2;
    listener->retry = (struct timer){.fire = resume_accepting};
    listener->next = NULL;
    return listener;
}

struct error *
listeners_open(const struct address *address, unsigned socket_mode, const struct listener *like,
               struct listener **out)
{
    struct listeners opened;
    struct error *error = address_is_local(address)
                              ? open_unix(address, socket_mode, &opened)
                              : socket_listen_tcp(address, like->loop->log, &opened);
    if (error)
        return error;
    for (size_t i = 0; i < opened.count; i++) {
        *out = new_listener(like, &opened.items[i]);
        out = &(*out)->next;
    }
    return NULL;
}

void
listener_init(struct listener *listener)
{
    uv_poll_init(&listener->loop->uv, &listener->poll, listener->fd);
    listener->poll.data = listener;
}

void
listener_start(struct listener *listener)
{
    uv_poll_start(&listener->poll, UV_READABLE, on_ready);
}

static void
release(struct listener *listener)
{
    if (--listener->references == 0)
        free(listener);
}

static void
on_poll_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void
listener_stop(struct listener *listener)
{
    if (uv_is_closing((uv_handle_t *)&listener->poll))
        return;
    loop_disarm(listener->loop, &listener->retry);
    if (listener->address.kind == ADDRESS_UNIX && !listener->is_inherited)
        unlink(listener->address.path);
    uv_close((uv_handle_t *)&listener->poll, on_poll_closed);
    close(listener->fd);
}

void
listener_free(struct listener *listener)
{
    release(listener);
}
