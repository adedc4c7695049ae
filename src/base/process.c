/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running programs: see process.h.
 *
 * The child leads its own process group, so that the time limit also ends what it started. The end
 * of the program is reported by its pidfd, not by the end of file on the pipe, which a grandchild
 * may keep open. posix_spawn was rejected because the child has to die with its parent: a mkfs that
 * outlives a killed daemon would write into what the next one makes.
 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"

#define OUTPUT_LIMIT (64u * 1024)
#define MESSAGE_LIMIT 500u
#define CANNOT_START 127 /* exit code, as in the shell */

static const char *const directories[] = {"/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin",
                                          "/bin"};

static bool
find_program(const char *program, char *path, size_t size)
{
    for (size_t i = 0; i < COUNT_OF(directories); i++) {
        snprintf(path, size, "%s/%s", directories[i], program);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* The Debian packages of the programs that skycap runs. */
static const struct {
    const char *program, *package;
} packages[] = {
    {"mkfs.btrfs", "btrfs-progs"}, {"mkfs.ext4", "e2fsprogs"}, {"e2fsck", "e2fsprogs"},
    {"resize2fs", "e2fsprogs"},    {"mkfs.xfs", "xfsprogs"},   {"xfs_growfs", "xfsprogs"},
};

static struct error *
not_installed(const char *program)
{
    for (size_t i = 0; i < COUNT_OF(packages); i++) {
        if (strcmp(packages[i].program, program) == 0)
            return error_new(CODE_FAILED_PRECONDITION,
                             "%s is not installed; it is in the package %s (Debian: apt-get "
                             "install %s)",
                             program, packages[i].package, packages[i].package);
    }
    return error_new(CODE_FAILED_PRECONDITION, "%s is not installed", program);
}

/* ---- a program that runs ---- */

/*
 * Runs in the child. Makes only calls that are allowed between fork and exec. The kernel sends the
 * signal when the thread that forked ends; a parent that ended before prctl is noticed by its
 * process id.
 */
__attribute__((noreturn)) static void
become(const char *path, const char *const *arguments, const char *const *environment, int output,
       int errors, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    int input = open("/dev/null", O_RDONLY);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || setpgid(0, 0) != 0 ||
        dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0)
        _exit(CANNOT_START);
    close_range(3, ~0u, 0);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, (char *const *)arguments, (char *const *)environment);
    _exit(CANNOT_START);
}

static struct error *
watch_end(struct process *process, const char *path)
{
    setpgid(process->pid, process->pid); /* both do it, whichever comes first */
    process->ended = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->ended >= 0)
        return NULL;
    int failed = errno;
    process_signal(process, SIGKILL);
    process_reap(process);
    return error_from_errno(failed, "watch over %s", path);
}

static void
close_pipe(int ends[2])
{
    files_close(&ends[0]);
    files_close(&ends[1]);
}

/* The program writes into the pipes; `errors` may be the same array as `output`. */
static struct error *
start_with_pipes(const char *path, const char *const *arguments, const char *const *environment,
                 const int output[2], const int errors[2], struct process *out)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(path, arguments, environment, output[1], errors[1], parent);
    if (pid < 0)
        return error_from_errno(errno, "start %s", path);
    *out = (struct process){.pid = pid, .ended = -1, .output = output[0], .errors = -1};
    if (errors != output)
        out->errors = errors[0];
    return NULL;
}

static struct error *
start(const char *path, const char *const *arguments, const char *const *environment,
      bool is_separate, struct process *out)
{
    int output[2] = {-1, -1}, errors[2] = {-1, -1};
    struct error *error = NULL;
    if (access(path, X_OK) != 0)
        return error_from_errno(errno, "start %s", path);
    if (pipe2(output, O_CLOEXEC) != 0 || (is_separate && pipe2(errors, O_CLOEXEC) != 0))
        error = error_from_errno(errno, "make a pipe for %s", path);
    if (!error)
        error = start_with_pipes(path, arguments, environment, output,
                                 is_separate ? errors : output, out);
    if (error) {
        close_pipe(output);
        close_pipe(errors);
        return error;
    }
    files_close(&output[1]);
    files_close(&errors[1]);
    return watch_end(out, path);
}

struct error *
process_start(const char *path, const char *const *arguments, const char *const *environment,
              struct process *out)
{
    return start(path, arguments, environment, false, out);
}

struct error *
process_start_separate(const char *path, const char *const *arguments,
                       const char *const *environment, struct process *out)
{
    return start(path, arguments, environment, true, out);
}

void
process_signal(const struct process *process, int number)
{
    kill(-process->pid, number);
}

int
process_reap(struct process *process)
{
    int status = 0;
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (process->output >= 0)
        close(process->output);
    if (process->errors >= 0)
        close(process->errors);
    if (process->ended >= 0)
        close(process->ended);
    return status;
}

/* ---- a program that is waited for ---- */

/*
 * Reads what is in the pipe. Output beyond the limit is read and dropped, so that the program does
 * not block.
 */
static void
read_output(struct process *child, struct buffer *output)
{
    char bytes[4096];
    ssize_t size = read(child->output, bytes, sizeof bytes);
    if (size <= 0) {
        close(child->output);
        child->output = -1;
    } else if (output->size < OUTPUT_LIMIT) {
        size_t room = OUTPUT_LIMIT - output->size;
        buffer_append(output, bytes, (size_t)size < room ? (size_t)size : room);
    }
}

/*
 * Reads the last output. Another process may keep writing to the pipe forever, so this reads no
 * more than it keeps.
 */
static void
read_rest(struct process *child, struct buffer *output)
{
    struct pollfd polled = {child->output, POLLIN, 0};
    while (child->output >= 0 && output->size < OUTPUT_LIMIT && poll(&polled, 1, 0) > 0)
        read_output(child, output);
}

/* False: the time is up. */
static bool
follow(struct process *child, int timeout_ms, struct buffer *output)
{
    int64_t end_ms = (int64_t)clock_now_ms() + timeout_ms;
    for (;;) {
        int64_t left_ms = end_ms - (int64_t)clock_now_ms();
        struct pollfd polled[] = {{child->output, POLLIN, 0}, {child->ended, POLLIN, 0}};
        int ready = poll(polled, COUNT_OF(polled), left_ms > 0 ? (int)left_ms : 0);
        /* Checked even if there is always something to read: a program may never stop writing. */
        if (ready == 0 || left_ms <= 0)
            return false;
        if (ready > 0 && polled[1].revents) {
            read_rest(child, output);
            return true;
        }
        if (ready > 0)
            read_output(child, output);
    }
}

void
process_summarize(struct buffer *output, char *line, size_t size)
{
    const char *text = buffer_text(output);
    size_t length = strlen(text);
    while (length && strchr(" \n\r\t", text[length - 1]))
        length--;
    size_t start = length >= size ? length - size + 1 : 0;
    memcpy(line, text + start, length - start);
    line[length - start] = 0;
    for (char *at = line; *at; at++) {
        if (*at == '\n' || *at == '\r' || *at == '\t')
            *at = ' ';
    }
}

static struct error *
judge(const char *program, int status, struct buffer *output, int *exit_code)
{
    char said[MESSAGE_LIMIT];
    process_summarize(output, said, sizeof said);
    if (WIFSIGNALED(status))
        return error_new(CODE_INTERNAL, "%s was killed by signal %d: %s", program, WTERMSIG(status),
                         said);
    int code = WEXITSTATUS(status);
    if (exit_code)
        *exit_code = code;
    else if (code)
        return error_new(CODE_INTERNAL, "%s ended with exit code %d: %s", program, code, said);
    return NULL;
}

struct error *
process_run(const char *const *arguments, int timeout_ms, struct buffer *output, int *exit_code)
{
    static const char *const environment[] = {"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
                                              "LC_ALL=C", NULL};
    char path[256];
    struct buffer own AUTO(buffer_clear) = {0};
    struct process child;
    if (!output)
        output = &own;
    if (!find_program(arguments[0], path, sizeof path))
        return not_installed(arguments[0]);
    struct error *error = process_start(path, arguments, environment, &child);
    if (error)
        return error;
    bool in_time = follow(&child, timeout_ms, output);
    if (!in_time)
        process_signal(&child, SIGKILL);
    int status = process_reap(&child);
    if (!in_time)
        return error_new(CODE_DEADLINE_EXCEEDED, "%s was not done after %d ms and was killed",
                         arguments[0], timeout_ms);
    return judge(arguments[0], status, output, exit_code);
}
