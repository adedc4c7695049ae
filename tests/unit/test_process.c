/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/process.c */
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "writer_ahead.h"

static double
now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
check_code(struct error *error, enum code code)
{
    CHECK_TEXT(error_code_name(error ? error->code : CODE_OK), error_code_name(code));
    error_free(error);
}

static void
output_and_exit_code_are_given(void)
{
    const char *const arguments[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
    struct buffer output AUTO(buffer_clear) = {0};
    int code = -1;
    check_code(process_run(arguments, 10000, &output, &code), CODE_OK);
    CHECK_NUMBER(code, 3);
    CHECK_TEXT(buffer_text(&output), "out\nerr\n");
}

static void
a_bad_exit_code_is_an_error_with_what_was_said(void)
{
    const char *const arguments[] = {"sh", "-c", "echo the disk; echo is on fire; exit 1", NULL};
    struct error *error = process_run(arguments, 10000, NULL, NULL);
    CHECK(error && error->code == CODE_INTERNAL);
    CHECK_TEXT(error ? error->message : NULL, "sh ended with exit code 1: the disk is on fire");
    error_free(error);
}

/* Both at the pace of this machine, and where there is always something to read. */
static void
a_program_that_never_stops_writing_has_its_time_and_no_more(void)
{
    const char *const arguments[] = {"yes", NULL};
    for (int place = -1; place <= 0; place++) {
        writer_goes_ahead(place, 10);
        double started = now_s();
        check_code(process_run(arguments, 300, NULL, NULL), CODE_DEADLINE_EXCEEDED);
        CHECK(now_s() - started < 5);
    }
    writer_stays_behind();
}

static void
a_long_output_is_cut_and_the_program_goes_on(void)
{
    const char *const arguments[] = {"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 7",
                                     NULL};
    struct buffer output AUTO(buffer_clear) = {0};
    int code = -1;
    check_code(process_run(arguments, 10000, &output, &code), CODE_OK);
    CHECK_NUMBER(code, 7);
    CHECK_NUMBER(output.size, 64 * 1024);
    struct error *error = process_run(arguments, 10000, NULL, NULL);
    CHECK(error && strlen(error->message) < 600);
    error_free(error);
}

static void
a_program_that_is_not_installed_is_named(void)
{
    const char *const arguments[] = {"no-such-program-as-this", NULL};
    struct error *error = process_run(arguments, 1000, NULL, NULL);
    CHECK(error && strstr(error->message, "no-such-program-as-this is not installed"));
    check_code(error, CODE_FAILED_PRECONDITION);
}

static void
the_path_of_the_caller_does_not_matter(void)
{
    const char *const arguments[] = {"sh", "-c", "echo $PATH $HOME $LC_ALL", NULL};
    struct buffer output AUTO(buffer_clear) = {0};
    setenv("PATH", "/nonexistent", 1);
    setenv("HOME", "/secret", 1);
    check_code(process_run(arguments, 10000, &output, NULL), CODE_OK);
    CHECK_TEXT(buffer_text(&output), "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin C\n");
}

/* Also what the program has started: the pipe would otherwise stay open for ten seconds. */
static void
the_time_limit_ends_the_program_and_its_children(void)
{
    const char *const arguments[] = {"sh", "-c", "sleep 10 & sleep 10; true", NULL};
    double start = now_s();
    check_code(process_run(arguments, 100, NULL, NULL), CODE_DEADLINE_EXCEEDED);
    CHECK(now_s() - start < 5);
}

static void
a_child_that_stays_behind_is_not_waited_for(void)
{
    const char *const arguments[] = {"sh", "-c", "sleep 3 & echo started", NULL};
    struct buffer output AUTO(buffer_clear) = {0};
    double start = now_s();
    check_code(process_run(arguments, 10000, &output, NULL), CODE_OK);
    CHECK(now_s() - start < 2);
    CHECK_TEXT(buffer_text(&output), "started\n");
}

static void
a_child_that_stays_behind_and_writes_is_not_waited_for(void)
{
    const char *const arguments[] = {"sh", "-c", "yes & exit 3", NULL};
    struct buffer output AUTO(buffer_clear) = {0};
    int code = -1;
    double start = now_s();
    writer_goes_ahead(0, 10);
    check_code(process_run(arguments, 2000, &output, &code), CODE_OK);
    writer_stays_behind();
    CHECK(now_s() - start < 2);
    CHECK_NUMBER(code, 3);
}

static void
a_signal_is_told(void)
{
    const char *const arguments[] = {"sh", "-c", "kill -9 $$", NULL};
    struct error *error = process_run(arguments, 10000, NULL, NULL);
    CHECK(error && strstr(error->message, "signal 9"));
    error_free(error);
}

/* 0, 1 and 2, and the one with which ls reads the directory. */
static void
no_descriptor_is_inherited(void)
{
    const char *const arguments[] = {"ls", "/proc/self/fd", NULL};
    struct buffer output AUTO(buffer_clear) = {0};
    int leaky = open("/dev/null", O_RDONLY);
    check_code(process_run(arguments, 10000, &output, NULL), CODE_OK);
    CHECK_TEXT(buffer_text(&output), "0\n1\n2\n3\n");
    close(leaky);
}

static unsigned
count_descriptors(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void
nothing_is_left_open(void)
{
    const char *const arguments[] = {"true", NULL};
    unsigned before = count_descriptors();
    for (int i = 0; i < 20; i++)
        check_code(process_run(arguments, 10000, NULL, NULL), CODE_OK);
    CHECK_NUMBER(count_descriptors(), before);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* A child of ours runs a program that sleeps, and is killed; the program's process id comes through the pipe. */
static void
the_program_dies_with_its_parent(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        char command[64];
        snprintf(command, sizeof command, "echo $$ >/proc/%d/fd/%d; exec sleep 30", getpid(),
                 ends[1]);
        const char *const arguments[] = {"sh", "-c", command, NULL};
        error_free(process_run(arguments, 60000, NULL, NULL));
        _exit(0);
    }
    char text[32] = "";
    CHECK(read(ends[0], text, sizeof text - 1) > 0);
    pid_t program = (pid_t)atoi(text);
    CHECK(program > 1 && kill(program, 0) == 0);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    bool is_gone = false;
    for (int i = 0; i < 500 && !is_gone; i++) {
        char path[64], state[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", program);
        int fd = open(path, O_RDONLY);
        is_gone = fd < 0 || read(fd, state, sizeof state - 1) <= 0 || strstr(state, ") Z ");
        if (fd >= 0)
            close(fd);
        struct timespec pause = {.tv_nsec = 10000000};
        nanosleep(&pause, NULL);
    }
    CHECK(is_gone);
    close(ends[0]);
    close(ends[1]);
}

static void
read_all(int fd, char *text, size_t size)
{
    size_t at = 0;
    ssize_t got;
    while ((got = read(fd, text + at, size - 1 - at)) > 0)
        at += (size_t)got;
    text[at] = '\0';
}

static void
both_outputs_can_be_told_apart(void)
{
    const char *const arguments[] = {"sh", "-c", "echo out; echo err >&2", NULL};
    const char *const environment[] = {NULL};
    char text[64];
    struct process process;
    check_code(process_start_separate("/bin/sh", arguments, environment, &process), CODE_OK);
    read_all(process.output, text, sizeof text);
    CHECK_TEXT(text, "out\n");
    read_all(process.errors, text, sizeof text);
    CHECK_TEXT(text, "err\n");
    CHECK_NUMBER(process_reap(&process), 0);
    check_code(process_start_separate("/nonexistent", arguments, environment, &process),
               CODE_NOT_FOUND);
}

int
main(void)
{
    both_outputs_can_be_told_apart();
    output_and_exit_code_are_given();
    a_bad_exit_code_is_an_error_with_what_was_said();
    a_program_that_never_stops_writing_has_its_time_and_no_more();
    a_long_output_is_cut_and_the_program_goes_on();
    a_program_that_is_not_installed_is_named();
    the_path_of_the_caller_does_not_matter();
    the_time_limit_ends_the_program_and_its_children();
    a_child_that_stays_behind_is_not_waited_for();
    a_child_that_stays_behind_and_writes_is_not_waited_for();
    a_signal_is_told();
    no_descriptor_is_inherited();
    nothing_is_left_open();
    the_program_dies_with_its_parent();
    return check_report("test_process");
}
