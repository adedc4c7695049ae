/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are kept running, with real ones of the shell: started again, ended, heard. */
#include "drivers/child_process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc_ends.h"
#include "writer_ahead.h"

struct seen {
    struct gate started;
    struct gate stopped;
    pthread_mutex_t lock;
    char trouble[256]; /* the last one */
};

#define SEEN_INIT                                                                                  \
    {                                                                                              \
        GATE_INIT, GATE_INIT, PTHREAD_MUTEX_INITIALIZER, ""                                        \
    }

static void
note(void *context, const char *trouble)
{
    struct seen *seen = context;
    pthread_mutex_lock(&seen->lock);
    snprintf(seen->trouble, sizeof seen->trouble, "%s", trouble ? trouble : "");
    pthread_mutex_unlock(&seen->lock);
    gate_pass(trouble ? &seen->stopped : &seen->started);
}

static bool
trouble_has(struct seen *seen, const char *part)
{
    pthread_mutex_lock(&seen->lock);
    bool has = strstr(seen->trouble, part) != NULL;
    pthread_mutex_unlock(&seen->lock);
    return has;
}

/* A directory of the test's own, with a log in it. */
struct place {
    char directory[64];
    char endpoint[128];
    char log_path[96];
    struct log log;
    struct text_map environment;
    struct arena arena;
};

static void
place_open(struct place *place)
{
    *place = (struct place){0};
    arena_init(&place->arena, NULL, 0, SIZE_MAX);
    snprintf(place->directory, sizeof place->directory, "/tmp/skycap-child-XXXXXX");
    CHECK(mkdtemp(place->directory) != NULL);
    snprintf(place->endpoint, sizeof place->endpoint, "unix://%s/csi.sock", place->directory);
    snprintf(place->log_path, sizeof place->log_path, "%s/log", place->directory);
    int fd = open(place->log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    place->log = (struct log){.level = LOG_INFO, .fd = fd};
}

static const char *
log_text_of(struct place *place)
{
    char *text = arena_zeroed(&place->arena, 1 << 20);
    CHECK(pread(place->log.fd, text, (1 << 20) - 1, 0) >= 0);
    return text;
}

static void
place_close(struct place *place)
{
    char path[160];
    close(place->log.fd);
    snprintf(path, sizeof path, "%s/csi.sock.lock", place->directory);
    unlink(path);
    unlink(place->log_path);
    CHECK(rmdir(place->directory) == 0); /* and nothing else was left */
    arena_clear(&place->arena);
}

static struct child_process *
start_shell(struct place *place, struct seen *seen, const char *script)
{
    const char **command = arena_zeroed(&place->arena, 4 * sizeof *command);
    command[0] = "/bin/sh";
    command[1] = "-c";
    command[2] = arena_string(&place->arena, script);
    struct child_process_options options = {
        .connection = "slow",
        .command = command,
        .environment = &place->environment,
        .endpoint = place->endpoint,
        .changed = note,
        .context = seen,
        .log = &place->log,
    };
    struct child_process *child;
    succeed(child_process_open(&options, &child));
    return child;
}

static bool
wait_for_log(struct place *place, const char *part)
{
    uint64_t start = timers_now();
    while (!strstr(log_text_of(place), part)) {
        if (ms_since(start) > PATIENCE_MS)
            return false;
        sleep_ms(5);
    }
    return true;
}

/* The number that a line "pid 123" of the program's told. */
static pid_t
told_pid(struct place *place)
{
    CHECK(wait_for_log(place, "pid "));
    const char *line = strstr(log_text_of(place), "line=\"pid ");
    return line ? (pid_t)atoi(line + strlen("line=\"pid ")) : 0;
}

/* It does not run any more; whoever has inherited it may not have buried it yet. */
static bool
has_ended(pid_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    bool is_read = fscanf(file, "%*d %*s %c", &state) == 1;
    fclose(file);
    return !is_read || state == 'Z' || state == 'X';
}

static bool
is_gone(pid_t pid)
{
    uint64_t start = timers_now();
    while (!has_ended(pid) && ms_since(start) < PATIENCE_MS)
        sleep_ms(5);
    return has_ended(pid);
}

/* ---- the facts ---- */

static void
what_it_says_is_logged_line_by_line(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    struct child_process *child =
        start_shell(&place, &seen,
                    "echo one; echo two >&2; head -c 3000 /dev/zero | tr '\\0' x; echo; "
                    "printf last; exec sleep 100");
    CHECK(wait_for_log(&place, "xxx"));
    child_process_close(child);
    const char *log = log_text_of(&place);
    CHECK(strstr(log, "connection=slow line=one\n"));
    CHECK(strstr(log, "connection=slow line=two\n"));
    CHECK(strstr(log, "line=last\n")); /* without an end of line */
    const char *cut = strstr(log, "line=xxx");
    CHECK_NUMBER(strspn(cut + strlen("line="), "x"), 1023);
    CHECK(!strstr(cut + 1100, "xxx"));
    place_close(&place);
}

static void
its_environment_names_the_socket_and_nothing_of_ours(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    setenv("CSI_ENDPOINT", "unix:///run/ours.sock", 1);
    setenv("NOTIFY_SOCKET", "/run/notify", 1);
    setenv("SAME", "ours", 1);
    setenv("KEPT", "kept", 1);
    place_open(&place);
    text_map_set(&place.environment, &place.arena, "SAME", "theirs");
    struct child_process *child = start_shell(
        &place, &seen, "echo \"<$CSI_ENDPOINT $NOTIFY_SOCKET $SAME $KEPT>\"; exec sleep 100");
    char wanted[256];
    snprintf(wanted, sizeof wanted, "<%s  theirs kept>", place.endpoint);
    CHECK(wait_for_log(&place, wanted));
    child_process_close(child);
    place_close(&place);
}

static void
it_gets_no_descriptor_and_no_input(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    int leaked = open("/dev/null", O_RDONLY); /* not marked to be closed */
    struct child_process *child =
        start_shell(&place, &seen,
                    "read x && echo input; set -- /proc/self/fd/*; echo \"fds $#\"; "
                    "readlink /proc/self/fd/0; exec sleep 100");
    CHECK(wait_for_log(&place, "line=/dev/null"));
    child_process_close(child);
    const char *log = log_text_of(&place);
    CHECK(strstr(log, "fds 4") != NULL ||
          strstr(log, "fds 3") != NULL); /* + the directory itself */
    CHECK(!strstr(log, "line=input"));
    close(leaked);
    place_close(&place);
}

static void
it_is_started_again_after_growing_pauses(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    uint64_t start = timers_now();
    struct child_process *child = start_shell(&place, &seen, "exit 3");
    CHECK(gate_wait(&seen.started, 4));
    CHECK(ms_since(start) >= 100 + 200 + 400);
    CHECK(gate_wait(&seen.stopped, 4));
    CHECK(trouble_has(&seen, "its program has ended with exit code 3"));
    start = timers_now();
    child_process_close(child); /* in the middle of a pause */
    CHECK(ms_since(start) < 500);
    place_close(&place);
}

static void
its_end_by_a_signal_is_told(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    struct child_process *child = start_shell(&place, &seen, "kill -SEGV $$");
    CHECK(gate_wait(&seen.stopped, 1));
    CHECK(trouble_has(&seen, "its program was killed by signal 11"));
    CHECK(gate_wait(&seen.started, 2));
    child_process_close(child);
    place_close(&place);
}

static void
a_program_that_is_not_there_is_told(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    const char *command[] = {"/nonexistent/driver", NULL};
    place_open(&place);
    struct child_process_options options = {.connection = "slow",
                                            .command = command,
                                            .environment = &place.environment,
                                            .endpoint = place.endpoint,
                                            .changed = note,
                                            .context = &seen,
                                            .log = &place.log};
    struct child_process *child;
    succeed(child_process_open(&options, &child));
    CHECK(gate_wait(&seen.stopped, 2));
    CHECK(trouble_has(&seen, "start /nonexistent/driver: No such file or directory"));
    child_process_close(child);
    place_close(&place);
}

static void
closing_ends_all_that_it_started(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    struct child_process *child =
        start_shell(&place, &seen, "sleep 100 & echo pid $!; trap 'echo bye; exit' TERM; wait");
    pid_t grandchild = told_pid(&place);
    CHECK(grandchild > 0 && !has_ended(grandchild));
    uint64_t start = timers_now();
    child_process_close(child);
    CHECK(ms_since(start) < 2000);
    CHECK(strstr(log_text_of(&place), "line=bye"));
    CHECK(is_gone(grandchild));
    place_close(&place);
}

/* A program that ends leaves nothing behind either, before it is started again. */
static void
a_crash_ends_all_that_it_started(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    struct child_process *child = start_shell(&place, &seen, "sleep 100 & echo pid $!; exit 1");
    pid_t grandchild = told_pid(&place);
    CHECK(gate_wait(&seen.stopped, 1));
    CHECK(is_gone(grandchild));
    child_process_close(child);
    place_close(&place);
}

/* Its 5 s are counted in whole milliseconds, of which the first may be almost over. */
#define PATIENCE_LEFT_MS 4999

static void
one_that_does_not_end_is_killed(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    struct child_process *child =
        start_shell(&place, &seen, "trap '' TERM; echo pid $$; while :; do sleep 0.2; done");
    pid_t pid = told_pid(&place);
    uint64_t start = timers_now();
    child_process_close(child);
    CHECK(ms_since(start) >= PATIENCE_LEFT_MS && ms_since(start) < 7000);
    CHECK(is_gone(pid));
    CHECK(strstr(log_text_of(&place), "program did not end when asked to and is killed"));
    place_close(&place);
}

/* One endless line, which is cut; in what is polled the program's output comes second. */
static void
one_that_never_stops_writing_is_killed(void)
{
    struct place place;
    struct seen seen = SEEN_INIT;
    place_open(&place);
    struct child_process *child =
        start_shell(&place, &seen, "trap '' TERM; echo pid $$; exec tr '\\0' x </dev/zero");
    pid_t pid = told_pid(&place);
    uint64_t start = timers_now();
    writer_goes_ahead(1, 10);
    child_process_close(child);
    writer_stays_behind();
    CHECK(ms_since(start) >= PATIENCE_LEFT_MS && ms_since(start) < 8000);
    CHECK(is_gone(pid));
    CHECK(strstr(log_text_of(&place), "program did not end when asked to and is killed"));
    place_close(&place);
}

/* Two connections, one after the other, for one socket. */
static void
a_successor_waits_for_its_predecessor(void)
{
    struct place place;
    struct seen first_seen = SEEN_INIT, second_seen = SEEN_INIT;
    place_open(&place);
    struct child_process *first =
        start_shell(&place, &first_seen,
                    "trap 'sleep 0.3; echo first-ends; exit' TERM; echo up; sleep 100 & wait");
    CHECK(wait_for_log(&place, "line=up"));
    struct child_process *second =
        start_shell(&place, &second_seen, "echo second-starts; exec sleep 100");
    CHECK(gate_wait(&second_seen.stopped, 1));
    CHECK(trouble_has(&second_seen, "a program that listens there is still running"));
    CHECK_NUMBER(gate_count(&second_seen.started), 0);
    child_process_close(first);
    CHECK(wait_for_log(&place, "line=second-starts"));
    const char *log = log_text_of(&place);
    CHECK(strstr(log, "first-ends") && strstr(log, "first-ends") < strstr(log, "second-starts"));
    child_process_close(second);
    place_close(&place);
}

int
main(void)
{
    what_it_says_is_logged_line_by_line();
    its_environment_names_the_socket_and_nothing_of_ours();
    it_gets_no_descriptor_and_no_input();
    it_is_started_again_after_growing_pauses();
    its_end_by_a_signal_is_told();
    a_program_that_is_not_there_is_told();
    closing_ends_all_that_it_started();
    a_crash_ends_all_that_it_started();
    one_that_does_not_end_is_killed();
    one_that_never_stops_writing_is_killed();
    a_successor_waits_for_its_predecessor();
    return check_report("child_process");
}
