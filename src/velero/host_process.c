/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin's process: see host_process.h.
 *
 * DESIGN. One thread polls the two outputs, the process's end and the order to stop, so that a
 * plugin that writes without end, or hangs, holds up nobody. The end is told by the pidfd and not
 * by the end of file, because a grandchild may keep the pipes open.
 */
#include "velero/host_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "proto/goplugin.pb-c.h"
#include "velero/host_environment.h"
#include "velero/host_handshake.h"
#include "velero/host_log.h"
#include "velero/host_stdio.h"

#define SHUTDOWN_MS 1500 /* for the answer to Shutdown */
#define GRACE_MS 2000    /* from the order to stop until the process is killed */
#define LAST_WORDS_MS 500
#define MAX_LAST_READS 32
#define CONNECT_MS 10000

enum state {
    STARTING, /* no handshake yet */
    READY,
    ENDED, /* reaped */
};

struct host_process {
    struct host_process_options options;
    pthread_t thread;
    int stop; /* eventfd */

    pthread_mutex_t lock; /* for the next four */
    pthread_cond_t changed;
    enum state state;
    struct error *failure; /* ENDED before it was READY: why */
    char ending[512];      /* ENDED: how */

    struct host_handshake handshake; /* once READY */

    /* The thread's own. */
    struct process child;
    struct host_log log;
    struct buffer first_line;
    bool has_line;

    /* The owner's own. */
    struct tls_context *tls;
    struct channel *channel;
    struct host_stdio *stdio;
    bool is_broken; /* it does not answer as it should; read by the thread once it is to stop */
};

/* ---- output ---- */

/* Keeps the first line of standard output; what follows is dropped. */
static void
take_output(struct host_process *process, const char *bytes, size_t size)
{
    if (process->has_line)
        return;
    const char *feed = memchr(bytes, '\n', size);
    size_t part = feed ? (size_t)(feed - bytes) : size;
    size_t room = HOST_HANDSHAKE_MAX_BYTES + 1 - process->first_line.size;
    buffer_append(&process->first_line, bytes, part < room ? part : room);
    process->has_line = feed || process->first_line.size > HOST_HANDSHAKE_MAX_BYTES;
}

/* False: there is nothing to read now. */
static bool
read_pipe(struct host_process *process, int *pipe)
{
    char bytes[4096];
    if (*pipe < 0)
        return false;
    ssize_t size = read(*pipe, bytes, sizeof bytes);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0)
        files_close(pipe);
    else if (pipe == &process->child.output)
        take_output(process, bytes, (size_t)size);
    else
        host_log_take(&process->log, bytes, (size_t)size);
    return size > 0;
}

/* Reads what is left, with a limit: a grandchild may still write. */
static void
read_rest(struct host_process *process)
{
    for (int i = 0; i < MAX_LAST_READS && read_pipe(process, &process->child.output); i++)
        ;
    for (int i = 0; i < MAX_LAST_READS && read_pipe(process, &process->child.errors); i++)
        ;
    host_log_end(&process->log);
}

/* ---- following ---- */

enum follow_end { HAS_ENDED, HAS_LINE, IS_STOPPED, TIME_IS_OVER };

struct follow {
    int64_t end_ms; /* on the monotonic clock; 0: no limit */
    bool until_line;
    bool until_stopped;
};

/* Milliseconds for poll(2); 0: the time is over. */
static int
time_left(const struct follow *follow)
{
    if (!follow->end_ms)
        return -1;
    int64_t left_ms = follow->end_ms - (int64_t)clock_now_ms();
    return left_ms > 0 ? (int)left_ms : 0;
}

static enum follow_end
follow(struct host_process *process, struct follow how)
{
    struct process *child = &process->child;
    for (;;) {
        int left_ms = time_left(&how);
        struct pollfd polled[] = {{child->ended, POLLIN, 0},
                                  {child->output, POLLIN, 0},
                                  {child->errors, POLLIN, 0},
                                  {how.until_stopped ? process->stop : -1, POLLIN, 0}};
        int ready = poll(polled, COUNT_OF(polled), left_ms);
        /* The limit also holds for a program that never stops writing. */
        if (ready == 0 || left_ms == 0)
            return TIME_IS_OVER;
        if (ready < 0)
            continue;
        if (polled[1].revents)
            read_pipe(process, &child->output);
        if (polled[2].revents)
            read_pipe(process, &child->errors);
        if (how.until_line && process->has_line)
            return HAS_LINE;
        if (polled[3].revents)
            return IS_STOPPED;
        if (polled[0].revents)
            return HAS_ENDED;
    }
}

/* ---- the end ---- */

static void
set_state(struct host_process *process, enum state state, struct error *failure)
{
    pthread_mutex_lock(&process->lock);
    process->state = state;
    if (failure)
        process->failure = failure;
    pthread_cond_broadcast(&process->changed);
    pthread_mutex_unlock(&process->lock);
}

static void
describe_end(struct host_process *process, int status)
{
    const char *last = process->log.last;
    char how[64];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(status));
    pthread_mutex_lock(&process->lock);
    snprintf(process->ending, sizeof process->ending, "%s%s%s", how,
             last[0] ? "; it said last: " : "", last);
    pthread_mutex_unlock(&process->lock);
}

/* Kills the whole process group before its number is free again. */
static void
reap(struct host_process *process)
{
    process_signal(&process->child, SIGKILL);
    struct pollfd polled = {process->child.ended, POLLIN, 0};
    while (poll(&polled, 1, -1) < 0 && errno == EINTR)
        ;
    read_rest(process);
    describe_end(process, process_reap(&process->child));
}

static void
stop_child(struct host_process *process)
{
    struct follow how = {.end_ms = (int64_t)clock_now_ms() + GRACE_MS};
    if (!process->is_broken && follow(process, how) == TIME_IS_OVER)
        log_warn(process->options.log, "plugin did not end when asked to and is killed",
                 LOG_TEXT("plugin", process->options.name));
    reap(process);
}

/* ---- the start ---- */

static struct error *
start_child(struct host_process *process)
{
    const struct host_process_options *options = &process->options;
    const char *arguments[] = {options->path, "--log-level",
                               log_wants(options->log, LOG_DEBUG) ? "debug" : "info", NULL};
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *certificate = options->identity ? arena_copy(&arena, options->identity->pem.bytes,
                                                             options->identity->pem.size)
                                                : NULL;
    struct error *error = process_start_separate(
        options->path, arguments, host_environment_make(options->directory, certificate, &arena),
        &process->child);
    if (error)
        return error;
    fcntl(process->child.output, F_SETFL, O_NONBLOCK);
    fcntl(process->child.errors, F_SETFL, O_NONBLOCK);
    return NULL;
}

/* Takes the way in which following ended, if that was before the handshake. */
static struct error *
no_handshake(struct host_process *process, enum follow_end end)
{
    switch (end) {
    case HAS_ENDED:
        return error_new(CODE_UNAVAILABLE, "it %s, before its handshake", process->ending);
    case TIME_IS_OVER:
        return error_new(CODE_DEADLINE_EXCEEDED,
                         "it has not printed its handshake after %u ms, and was killed",
                         process->options.start_timeout_ms);
    default:
        return error_new(CODE_CANCELLED, "it was stopped before its handshake");
    }
}

static struct error *
check_identity(const struct host_process *process)
{
    bool has_certificate = process->handshake.certificate.size;
    if (process->options.identity && !has_certificate)
        return error_new(CODE_FAILED_PRECONDITION, "it does not support mutual TLS");
    if (!process->options.identity && has_certificate)
        return error_new(CODE_FAILED_PRECONDITION, "it demands mutual TLS, which is not enabled");
    return NULL;
}

/* On error the process has ended. */
static struct error *
shake_hands(struct host_process *process)
{
    int64_t end_ms = (int64_t)clock_now_ms() + process->options.start_timeout_ms;
    enum follow_end end =
        follow(process, (struct follow){end_ms, .until_line = true, .until_stopped = true});
    if (end != HAS_LINE) {
        reap(process);
        return no_handshake(process, end);
    }
    struct error *error = host_handshake_parse(buffer_text(&process->first_line),
                                               process->first_line.size, &process->handshake);
    if (!error)
        error = check_identity(process);
    if (error)
        reap(process);
    return error;
}

static void *
supervise(void *argument)
{
    struct host_process *process = argument;
    struct error *error = start_child(process);
    if (!error)
        error = shake_hands(process);
    if (error) {
        set_state(process, ENDED, error);
        return NULL;
    }
    set_state(process, READY, NULL);
    if (follow(process, (struct follow){.until_stopped = true}) == IS_STOPPED)
        stop_child(process);
    else
        reap(process);
    set_state(process, ENDED, NULL);
    return NULL;
}

/* ---- for the owner ---- */

static struct error *
start_thread(struct host_process *process)
{
    clock_init_condition(&process->changed);
    pthread_mutex_init(&process->lock, NULL);
    process->stop = eventfd(0, EFD_CLOEXEC);
    if (process->stop < 0)
        return error_from_errno(errno, "make an eventfd");
    int failed = pthread_create(&process->thread, NULL, supervise, process);
    return failed ? error_from_errno(failed, "start a thread") : NULL;
}

static void
remove_directory(const struct host_process *process)
{
    struct error *error AUTO(error_cleanup) = tree_remove(AT_FDCWD, process->options.directory);
    if (error)
        log_warn(process->options.log, "the directory of a plugin could not be removed",
                 LOG_TEXT("directory", process->options.directory),
                 LOG_TEXT("error", error->message));
}

static void
free_process(struct host_process *process)
{
    files_close(&process->stop);
    pthread_mutex_destroy(&process->lock);
    pthread_cond_destroy(&process->changed);
    host_handshake_clear(&process->handshake);
    buffer_clear(&process->first_line);
    error_free(process->failure);
    remove_directory(process);
    free(process);
}

struct error *
host_process_start(const struct host_process_options *options, struct host_process **out)
{
    if (mkdir(options->directory, 0700) != 0)
        return error_from_errno(errno, "make the directory %s", options->directory);
    struct host_process *process = memory_zeroed(sizeof *process);
    process->options = *options;
    host_log_init(&process->log, options->log, options->name);
    struct error *error = start_thread(process);
    if (error) {
        free_process(process);
        return error;
    }
    *out = process;
    return NULL;
}

static struct error *
open_channel(struct host_process *process)
{
    const struct host_process_options *options = &process->options;
    struct error *error = NULL;
    if (options->identity)
        error = host_identity_trust(options->identity, &process->handshake.certificate,
                                    options->directory, &process->tls);
    if (error)
        return error;
    struct channel_options channel = {
        .tls = process->tls, .tls_name = "localhost", .connect_timeout_ms = CONNECT_MS};
    error = channel_open(options->runtime, process->handshake.target, &channel, &process->channel);
    if (!error)
        error = host_stdio_open(process->channel, options->log, options->name, &process->stdio);
    return error;
}

struct error *
host_process_wait(struct host_process *process)
{
    pthread_mutex_lock(&process->lock);
    while (process->state == STARTING)
        pthread_cond_wait(&process->changed, &process->lock);
    struct error *error = STEAL(process->failure);
    pthread_mutex_unlock(&process->lock);
    if (!error && !process->channel)
        error = open_channel(process);
    return error_wrap(error, "plugin %s", process->options.name);
}

struct channel *
host_process_channel(struct host_process *process)
{
    return process->channel;
}

bool
host_process_is_lost(struct host_process *process)
{
    pthread_mutex_lock(&process->lock);
    bool has_ended = process->state == ENDED;
    pthread_mutex_unlock(&process->lock);
    return has_ended || process->is_broken;
}

/* A broken connection is often noticed before the end of the process that had it. */
static bool
wait_for_end(struct host_process *process)
{
    struct timespec until = clock_after_ms(LAST_WORDS_MS);
    int timed_out = 0;
    pthread_mutex_lock(&process->lock);
    while (process->state != ENDED && !timed_out)
        timed_out = pthread_cond_timedwait(&process->changed, &process->lock, &until);
    bool has_ended = process->state == ENDED;
    pthread_mutex_unlock(&process->lock);
    return has_ended;
}

struct error *
host_process_judge(struct host_process *process, struct error *error)
{
    if (!error || error->from_peer ||
        (error->code != CODE_UNAVAILABLE && error->code != CODE_DEADLINE_EXCEEDED))
        return error_wrap(error, "plugin %s", process->options.name);
    process->is_broken = true;
    if (error->code == CODE_UNAVAILABLE && wait_for_end(process))
        return error_wrap(error, "plugin %s %s", process->options.name, process->ending);
    return error_wrap(error, "plugin %s does not answer", process->options.name);
}

static void
ask_to_end(struct host_process *process)
{
    Plugin__Empty request = PLUGIN__EMPTY__INIT, *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct call_options options = {.timeout_ns = SHUTDOWN_MS * UINT64_C(1000000)};
    /* Whatever comes back: many plugins end without an answer. */
    error_free(channel_call(process->channel, service_find_method("plugin.GRPCController/Shutdown"),
                            &request.base, &options, &arena, &reply));
}

void
host_process_close(struct host_process *process)
{
    uint64_t one = 1;
    if (!process)
        return;
    if (process->channel && !host_process_is_lost(process))
        ask_to_end(process);
    while (write(process->stop, &one, sizeof one) < 0 && errno == EINTR)
        ;
    host_stdio_close(process->stdio);
    pthread_join(process->thread, NULL);
    channel_close(process->channel);
    runtime_close_tls(process->options.runtime, process->tls);
    free_process(process);
}
