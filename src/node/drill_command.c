/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a drill: see drill_command.h. */
#include "node/drill_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

#define LOOK_MS 50
#define HOUR_MS (3600u * 1000)
#define OUTPUT_BYTES (64u << 10)

/* Reads what is there. False: the output has ended. */
static bool
read_output(const struct process *process, struct buffer *output)
{
    char bytes[4096];
    ssize_t got = read(process->output, bytes, sizeof bytes);
    if (got > 0 && output->size < OUTPUT_BYTES)
        buffer_append(output, bytes, (size_t)got);
    return got > 0 || (got < 0 && errno == EINTR);
}

/*
 * What was said last. Another process may write to the pipe for ever, so this reads no more than is
 * kept.
 */
static void
read_rest(const struct process *process, struct buffer *output)
{
    struct pollfd file = {.fd = process->output, .events = POLLIN};
    while (output->size < OUTPUT_BYTES && poll(&file, 1, 0) > 0 && read_output(process, output))
        ;
}

static uint32_t
timeout_of(const struct drill_request *request)
{
    return request->command_timeout_ms ? request->command_timeout_ms : HOUR_MS;
}

/*
 * Until the command itself has ended: others may keep its output open, or never stop writing to it.
 * Nothing of ours is at work meanwhile, so that others have the turn of this operation.
 */
static void
follow(const struct drill_request *request, const struct progress *progress,
       const struct process *process, struct buffer *output, bool *is_cancelled, bool *is_late)
{
    uint64_t end_ms = clock_now_ms() + timeout_of(request);
    for (bool is_open = true;;) {
        struct pollfd files[] = {{.fd = process->ended, .events = POLLIN},
                                 {.fd = is_open ? process->output : -1, .events = POLLIN}};
        bool is_killed = *is_cancelled || *is_late;
        if (poll(files, 2, is_killed ? LOOK_MS : 0) == 0 && !is_killed)
            progress_rest(progress, LOOK_MS);
        if (files[0].revents)
            return;
        if (files[1].revents)
            is_open = read_output(process, output);
        if (is_killed)
            continue;
        *is_cancelled = progress->cancelled(progress->context);
        *is_late = clock_now_ms() >= end_ms;
        if (*is_cancelled || *is_late)
            process_signal(process, SIGKILL);
    }
}

struct error *
drill_command_run(const struct drill_request *request, const struct progress *progress,
                  const char *place, struct buffer *output)
{
    const char *const environment[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
        place, NULL};
    struct process process;
    bool is_cancelled = false, is_late = false;
    char line[256];
    struct error *error =
        process_start(request->command[0], request->command, environment, &process);
    if (error)
        return error_wrap(error, "the command of the drill");
    follow(request, progress, &process, output, &is_cancelled, &is_late);
    process_signal(&process, SIGKILL); /* what it has left running would hold the volume */
    read_rest(&process, output);
    int status = process_reap(&process);
    if (is_cancelled)
        return error_new(CODE_CANCELLED, "the drill was cancelled");
    if (is_late)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the command of the drill was killed after %u s: it took too long",
                         timeout_of(request) / 1000);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    process_summarize(output, line, sizeof line);
    return error_new(CODE_FAILED_PRECONDITION, "the command of the drill ended with %s %d: %s",
                     WIFEXITED(status) ? "code" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), line);
}
