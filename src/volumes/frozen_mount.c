/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One frozen file system: see frozen_mount.h.
 *
 * The kernel never thaws by itself, not even when the process that froze is gone. Freezing waits
 * for all writes in progress, however long they take, and a process that waits for it cannot be
 * interrupted or killed. So a child process freezes the file system. It thaws when we tell it to on
 * a socket, when we die (which closes the socket), and when the time is up. Everything it needs is
 * prepared before the fork; after it the child makes only system calls, because other threads may
 * have held locks.
 *
 * Threads instead of children were rejected: a process does not end while one of its threads is in
 * such a wait.
 */
#include "volumes/frozen_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "rpc/loop/timers.h"

/* Exit codes of the child, besides 0. */
#define EXIT_TIME_OVER 1

int
frozen_mount_ms_until(int64_t time_ms)
{
    int64_t left = time_ms - (int64_t)(timers_now() / 1000000);
    return left > 0 ? (int)left : 0;
}

struct frozen_mount *
frozen_mount_new(const char *key, const char *path, int fd)
{
    struct frozen_mount *mount = memory_zeroed(sizeof *mount);
    mount->key = memory_string(key);
    mount->path = memory_string(path);
    mount->fd = fd;
    mount->line = -1;
    return mount;
}

void
frozen_mount_free(struct frozen_mount *mount)
{
    files_close(&mount->fd);
    files_close(&mount->line);
    free(mount->key);
    free(mount->path);
    free(mount);
}

/* ---- the child ---- */

static void
close_others(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b);
    unsigned high = (unsigned)(a < b ? b : a);
    if (low > 0)
        close_range(0, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0u, 0);
}

__attribute__((noreturn)) static void
freeze_for_a_while(int mount, int line, int64_t over_ms)
{
    struct pollfd end = {.fd = line, .events = POLLIN};
    close_others(mount, line);
    int failed = ioctl(mount, FIFREEZE, 0) == 0 ? 0 : errno;
    send(line, &failed, sizeof failed, MSG_NOSIGNAL);
    if (failed)
        _exit(0);
    bool is_over = poll(&end, 1, frozen_mount_ms_until(over_ms)) == 0;
    ioctl(mount, FITHAW, 0);
    _exit(is_over ? EXIT_TIME_OVER : 0);
}

struct error *
frozen_mount_start(struct frozen_mount *mount, int64_t over_ms)
{
    int ends[2];
    sigset_t all, before;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_from_errno(errno, "make a line to a child");
    sigfillset(&all);
    /* A signal to the process group is not meant for the child: it ends by itself, and soon. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0)
        freeze_for_a_while(mount->fd, ends[0], over_ms);
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    mount->line = ends[1];
    if (child < 0)
        return error_from_errno(failed, "start a process that freezes");
    mount->child = child;
    return NULL;
}

/* False: nothing was received, and the socket is open. `*told` is -1 when the child has ended. */
static bool
hear(const struct frozen_mount *mount, int wait_ms, int *told)
{
    struct pollfd line = {.fd = mount->line, .events = POLLIN};
    int ready;
    do
        ready = poll(&line, 1, wait_ms);
    while (ready < 0 && errno == EINTR);
    if (ready > 0 && recv(mount->line, told, sizeof *told, 0) != (ssize_t)sizeof *told)
        *told = -1;
    return ready > 0;
}

/* ---- freezing ---- */

struct error *
frozen_mount_wait(struct frozen_mount *mount, int64_t over_ms)
{
    int failed;
    mount->has_told = hear(mount, frozen_mount_ms_until(over_ms), &failed);
    if (!mount->has_told)
        return error_new(CODE_FAILED_PRECONDITION,
                         "a write to the volume at %s lasts longer than %d s, and before it ends "
                         "the volume cannot be frozen: see what hangs, or unpublish it first",
                         mount->path, FROZEN_MOUNT_LONGEST_MS / 1000);
    if (failed == 0)
        return NULL;
    if (failed == -1)
        return error_new(CODE_INTERNAL, "the process that freezes the volume was killed");
    if (failed == EBUSY)
        return error_new(CODE_ABORTED, "somebody else has frozen the volume; try again");
    return error_from_errno(failed, "freeze the volume");
}

/* ---- thawing ---- */

/* Closing the socket is not enough: another child that is about to exec may have it open too. */
void
frozen_mount_thaw(const struct frozen_mount *mount)
{
    if (mount->child)
        send(mount->line, "", 1, MSG_NOSIGNAL);
}

bool
frozen_mount_thaw_at(const char *path)
{
    int mount AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return mount >= 0 && ioctl(mount, FITHAW, 0) == 0; /* EINVAL: it is not frozen */
}

bool
frozen_mount_reap(struct frozen_mount *mount, int wait_ms)
{
    int status, told = 0;
    while (mount->child && told != -1)
        if (!hear(mount, wait_ms, &told))
            return false;
    if (!mount->child)
        return true;
    while (waitpid(mount->child, &status, 0) < 0 && errno == EINTR)
        ;
    mount->child = 0;
    if (!WIFEXITED(status)) /* it was killed before it could thaw */
        frozen_mount_thaw_at(mount->path);
    mount->was_ended = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return true;
}
