/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of subvolumes: see stream_btrfs.h. The kernel writes to a pipe, on a thread of its own.
 * Clones refer to the subvolume itself only, so that the target needs no other tree.
 */
#include "stream/stream_btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "stream/stream_format.h"
#include "stream/stream_prefetch.h"
#include "stream/stream_skip.h"

#define PIPE_BYTES (1 << 20)
#define READ_BYTES (256u << 10) /* small enough for the processor's cache */
#define FEW_BYTES (32u << 10)
#define PAUSE_US 500 /* the kernel makes less than PIPE_BYTES of small commands meanwhile */

/* What the thread does. */
struct sending {
    int subvolume;
    int pipe;
    uint64_t parent_root; /* 0: none */
    int errnum;           /* its result */
};

/* What is read from the pipe. */
struct reading {
    struct stream_skip *skip;
    struct stream_prefetch *prefetch; /* NULL: only a difference is sent */
};

static struct error *
find_root_id(int subvolume, uint64_t *out)
{
    struct btrfs_ioctl_ino_lookup_args lookup = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    if (ioctl(subvolume, BTRFS_IOC_INO_LOOKUP, &lookup) != 0)
        return error_from_errno(errno, "find the id of a subvolume");
    *out = lookup.treeid;
    return NULL;
}

static void *
run_send(void *context)
{
    struct sending *sending = context;
    struct btrfs_ioctl_send_args arguments = {.send_fd = sending->pipe,
                                              .parent_root = sending->parent_root,
                                              .flags = BTRFS_SEND_FLAG_VERSION,
                                              .version = STREAM_VERSION};
    sending->errnum = ioctl(sending->subvolume, BTRFS_IOC_SEND, &arguments) != 0 ? errno : 0;
    files_close(&sending->pipe); /* the reader sees the end */
    return NULL;
}

/* No signal reaches the thread: a reader that gives up must be an error, not SIGPIPE. */
static struct error *
start_thread(struct sending *sending, pthread_t *thread)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(thread, NULL, run_send, sending);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum ? error_from_errno(errnum, "start a thread") : NULL;
}

/*
 * If the process is stopped and continued (SIGSTOP, or the freezer of its control group), the
 * kernel begins the interrupted system call anew, and with it the stream, in the middle of a
 * command. The checksums of commands find that. Whoever reads the stream can continue before it.
 */
static struct error *
explain_damage(struct error *error)
{
    if (error->code == CODE_DATA_LOSS)
        error->code = CODE_UNAVAILABLE;
    return error;
}

static struct error *
read_all(struct reading *reading, int pipe)
{
    uint64_t offset = 0;
    uint8_t *bytes AUTO(memory_cleanup) = memory_new(READ_BYTES);
    for (;;) {
        ssize_t got = read(pipe, bytes, READ_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_from_errno(errno, "read a stream");
        if (got == 0)
            return NULL;
        struct error *error = stream_skip_take(reading->skip, bytes, (size_t)got);
        if (error)
            return explain_damage(error);
        offset += (uint64_t)got;
        if (reading->prefetch)
            stream_prefetch_advance(reading->prefetch, offset);
        /* The kernel writes each command by itself. To wait for each would cost more than it. */
        if ((size_t)got < FEW_BYTES)
            usleep(PAUSE_US);
    }
}

static struct error *
explain(int errnum)
{
    if (errnum == EINVAL)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the kernel does not send streams of version %u; Linux 6.0 does",
                         STREAM_VERSION);
    return error_from_errno(errnum, "send a subvolume");
}

/* Runs the thread and reads until it has ended. */
static struct error *
send_and_read(struct sending *sending, struct reading *reading)
{
    pthread_t thread;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return error_from_errno(errno, "make a pipe");
    /* A pipe that stays small is only slower. */
    (void)fcntl(pipes[0], F_SETPIPE_SZ, PIPE_BYTES);
    sending->pipe = pipes[1];
    struct error *error = start_thread(sending, &thread);
    if (error) {
        close(pipes[0]);
        close(pipes[1]);
        return error;
    }
    error = read_all(reading, pipes[0]);
    close(pipes[0]);
    pthread_join(thread, NULL);
    if (!error && sending->errnum)
        error = explain(sending->errnum);
    return error;
}

struct error *
stream_btrfs_send(int subvolume, int parent, const struct stream_position *from,
                  const struct stream_sink *sink, struct stream_position *end)
{
    struct sending sending = {.subvolume = subvolume};
    struct stream_skip skip AUTO(stream_skip_clear) = {.from = from, .sink = sink};
    struct reading reading = {.skip = &skip};
    struct stream_prefetch prefetch;
    struct error *error = parent >= 0 ? find_root_id(parent, &sending.parent_root) : NULL;
    if (!error && parent < 0) {
        stream_prefetch_begin(&prefetch, subvolume);
        reading.prefetch = &prefetch;
    }
    if (!error)
        error = send_and_read(&sending, &reading);
    if (reading.prefetch)
        stream_prefetch_end(reading.prefetch);
    return error ? error : stream_skip_finish(&skip, end);
}
