/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Supervises a program: see child_process.h.
 *
 * DESIGN. The thread is not the monitor's: the monitor waits for answers, and a program whose
 * output nobody reads meanwhile would block and not answer. The kernel kills the program when that
 * thread ends, so the program cannot outlive us.
 */
#include "drivers/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "rpc/http2/address.h"
#include "rpc/loop/timers.h"

#define FIRST_PAUSE_MS 100
#define LONGEST_PAUSE_MS 10000
#define GOOD_RUN_MS 30000
#define GRACE_MS 5000
#define LOCK_PAUSE_MS 100
#define LINE_BYTES 1024
#define MAX_LAST_READS 32
#define STACK_BYTES (256u * 1024)

struct child_process {
    struct child_process_options options;
    struct arena arena;
    const char **environment;
    const char *lock_path; /* NULL: none */
    int stop;              /* eventfd; readable: stop */
    pthread_t thread;

    /* The thread's own. */
    struct process running;
    int pause_ms; /* before the next start */
    char line[LINE_BYTES];
    size_t line_size;
    bool line_is_cut; /* the rest of the line is dropped */
};

static int64_t
now_ms(void)
{
    return (int64_t)(timers_now() / 1000000);
}

/* ---- output ---- */

static void
log_line(struct child_process *child)
{
    child->line[child->line_size] = 0;
    if (child->line_size)
        log_info(child->options.log, "program says",
                 LOG_TEXT("connection", child->options.connection), LOG_TEXT("line", child->line));
    child->line_size = 0;
}

static void
take_output(struct child_process *child, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            log_line(child);
            child->line_is_cut = false;
        } else if (!child->line_is_cut) {
            child->line[child->line_size++] = bytes[i] ? bytes[i] : ' ';
            child->line_is_cut = child->line_size == LINE_BYTES - 1;
        }
    }
}

static void
read_output(struct child_process *child)
{
    char bytes[4096];
    ssize_t size = read(child->running.output, bytes, sizeof bytes);
    if (size > 0) {
        take_output(child, bytes, (size_t)size);
        return;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(child->running.output);
    child->running.output = -1;
}

/* Reads the last output, with a limit: another process may still hold the pipe and write to it. */
static void
read_rest(struct child_process *child)
{
    for (int reads = 0; reads < MAX_LAST_READS && child->running.output >= 0; reads++) {
        struct pollfd polled = {child->running.output, POLLIN, 0};
        if (poll(&polled, 1, 0) <= 0)
            break;
        read_output(child);
    }
    log_line(child);
    child->line_is_cut = false;
}

/* ---- one run ---- */

enum follow_end { HAS_ENDED, IS_STOPPED, TIME_IS_OVER };

/* `limit_ms` -1: no limit. `minds_stop` is false while the program is being stopped. */
static enum follow_end
follow(struct child_process *child, int limit_ms, bool minds_stop)
{
    int64_t end_ms = now_ms() + limit_ms;
    for (;;) {
        int64_t left_ms = end_ms - now_ms();
        struct pollfd polled[] = {{child->running.ended, POLLIN, 0},
                                  {child->running.output, POLLIN, 0},
                                  {minds_stop ? child->stop : -1, POLLIN, 0}};
        int ready = poll(polled, COUNT_OF(polled),
                         limit_ms < 0  ? -1
                         : left_ms > 0 ? (int)left_ms
                                       : 0);
        /* The limit also holds for a program that never stops writing. */
        if (ready == 0 || (limit_ms >= 0 && left_ms <= 0))
            return TIME_IS_OVER;
        if (ready < 0)
            continue;
        if (polled[1].revents)
            read_output(child);
        if (polled[2].revents)
            return IS_STOPPED;
        if (polled[0].revents)
            return HAS_ENDED;
    }
}

/* True: stop. */
static bool
wait_stopped(struct child_process *child, int time_ms)
{
    struct pollfd polled = {child->stop, POLLIN, 0};
    int64_t end_ms = now_ms() + time_ms;
    for (;;) {
        int64_t left_ms = end_ms - now_ms();
        int ready = poll(&polled, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready >= 0)
            return ready > 0;
    }
}

static void
describe_end(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "its program was killed by signal %d", WTERMSIG(status));
    else
        snprintf(out, size, "its program has ended with exit code %d", WEXITSTATUS(status));
}

/* Kills the process group before its id is reused: the program's own children must end, too. */
static int
reap(struct child_process *child)
{
    process_signal(&child->running, SIGKILL);
    read_rest(child);
    return process_reap(&child->running);
}

static void
stop_program(struct child_process *child)
{
    process_signal(&child->running, SIGTERM);
    if (follow(child, GRACE_MS, false) == TIME_IS_OVER)
        log_warn(child->options.log, "program did not end when asked to and is killed",
                 LOG_TEXT("connection", child->options.connection));
    reap(child);
}

/* ---- restarts ---- */

static void
tell_trouble(struct child_process *child, const char *trouble)
{
    log_warn(child->options.log, "program does not run",
             LOG_TEXT("connection", child->options.connection), LOG_TEXT("why", trouble),
             LOG_NUMBER("next_start_ms", child->pause_ms));
    child->options.changed(child->options.context, trouble);
}

static struct error *
start_program(struct child_process *child)
{
    const char *const *command = child->options.command;
    struct error *error = process_start(command[0], command, child->environment, &child->running);
    if (error)
        return error;
    fcntl(child->running.output, F_SETFL, O_NONBLOCK);
    log_info(child->options.log, "program started",
             LOG_TEXT("connection", child->options.connection), LOG_TEXT("program", command[0]),
             LOG_NUMBER("pid", child->running.pid));
    child->options.changed(child->options.context, NULL);
    return NULL;
}

/* Runs the program once. False: stop. */
static bool
run_once(struct child_process *child)
{
    char trouble[256];
    int64_t started_ms = now_ms();
    struct error *error AUTO(error_cleanup) = start_program(child);
    if (!error && follow(child, -1, true) == IS_STOPPED) {
        stop_program(child);
        return false;
    }
    if (error)
        snprintf(trouble, sizeof trouble, "%s", error->message);
    else
        describe_end(reap(child), trouble, sizeof trouble);
    if (now_ms() - started_ms >= GOOD_RUN_MS || !child->pause_ms)
        child->pause_ms = FIRST_PAUSE_MS;
    tell_trouble(child, trouble);
    bool goes_on = !wait_stopped(child, child->pause_ms);
    child->pause_ms =
        child->pause_ms * 2 < LONGEST_PAUSE_MS ? child->pause_ms * 2 : LONGEST_PAUSE_MS;
    return goes_on;
}

/* The descriptor that holds the lock; -1: stop. */
static int
take_lock(struct child_process *child)
{
    for (bool is_told = false;; is_told = true) {
        int fd = open(child->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        char trouble[256];
        snprintf(trouble, sizeof trouble, "lock %s: %s", child->lock_path,
                 fd >= 0 ? "a program that listens there is still running" : strerror(errno));
        if (fd >= 0)
            close(fd);
        child->pause_ms = LOCK_PAUSE_MS;
        if (!is_told)
            tell_trouble(child, trouble);
        if (wait_stopped(child, LOCK_PAUSE_MS))
            return -1;
    }
}

static void *
thread_main(void *argument)
{
    struct child_process *child = argument;
    int lock = child->lock_path ? take_lock(child) : -1;
    child->pause_ms = 0;
    if (lock >= 0 || !child->lock_path)
        while (run_once(child))
            ;
    if (lock >= 0)
        close(lock);
    return NULL;
}

/* ---- its environment ---- */

/* Variables of our own service manager and endpoint. */
static bool
is_private(const char *entry)
{
    static const char *const names[] = {"CSI_ENDPOINT=", "NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strncmp(entry, names[i], strlen(names[i])))
            return true;
    }
    return false;
}

static bool
is_overridden(const struct text_map *said, const char *entry)
{
    for (size_t i = 0; i < said->count; i++) {
        size_t size = strlen(said->pairs[i].key);
        if (!strncmp(entry, said->pairs[i].key, size) && entry[size] == '=')
            return true;
    }
    return false;
}

static void
make_environment(struct child_process *child)
{
    const struct text_map *said = child->options.environment;
    size_t count = 0, size = said->count + 2;
    while (environ[count])
        count++;
    child->environment = arena_alloc(&child->arena, (count + size) * sizeof *child->environment);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_private(environ[i]) && !is_overridden(said, environ[i]))
            child->environment[used++] = arena_string(&child->arena, environ[i]);
    }
    if (!text_map_find(said, "CSI_ENDPOINT"))
        child->environment[used++] =
            arena_print(&child->arena, "CSI_ENDPOINT=%s", child->options.endpoint);
    for (size_t i = 0; i < said->count; i++)
        child->environment[used++] =
            arena_print(&child->arena, "%s=%s", said->pairs[i].key, said->pairs[i].value);
    child->environment[used] = NULL;
}

static const char *
find_lock_path(struct child_process *child)
{
    struct address address;
    struct error *error AUTO(error_cleanup) = address_parse(child->options.endpoint, &address);
    if (error || address.kind != ADDRESS_UNIX)
        return NULL;
    return arena_print(&child->arena, "%s.lock", address.path);
}

/* ---- life ---- */

static struct error *
start_thread(struct child_process *child)
{
    pthread_attr_t attributes;
    child->stop = eventfd(0, EFD_CLOEXEC);
    if (child->stop < 0)
        return error_from_errno(errno, "make an eventfd");
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = pthread_create(&child->thread, &attributes, thread_main, child);
    pthread_attr_destroy(&attributes);
    return failed ? error_from_errno(failed, "start a thread") : NULL;
}

static void
child_process_free(struct child_process *child)
{
    if (child->stop >= 0)
        close(child->stop);
    arena_clear(&child->arena);
    free(child);
}

struct error *
child_process_open(const struct child_process_options *options, struct child_process **out)
{
    struct child_process *child = memory_zeroed(sizeof *child);
    child->options = *options;
    arena_init(&child->arena, NULL, 0, SIZE_MAX);
    make_environment(child);
    child->lock_path = find_lock_path(child);
    struct error *error = start_thread(child);
    if (error) {
        child_process_free(child);
        return error_wrap(error, "keep a program running for connection \"%s\"",
                          options->connection);
    }
    *out = child;
    return NULL;
}

void
child_process_close(struct child_process *child)
{
    if (!child)
        return;
    uint64_t one = 1;
    while (write(child->stop, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(child->thread, NULL);
    child_process_free(child);
}
