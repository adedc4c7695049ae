/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/loop/workers.c */
#include "rpc/loop/workers.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "rpc_ends.h"

#define MANY 500u

struct test_work {
    struct work work; /* first */
    struct gate *started;
    struct gate *may_end; /* NULL: ends at once */
    struct gate *ended;
};

static struct gate started, may_end, ended;

static void
run(struct work *work)
{
    struct test_work *test = (struct test_work *)work;
    gate_pass(test->started);
    if (test->may_end)
        gate_wait(test->may_end, 1);
    gate_pass(test->ended);
}

static void
prepare(struct test_work *work, size_t count, bool blocks)
{
    started = may_end = ended = (struct gate)GATE_INIT;
    for (size_t i = 0; i < count; i++)
        work[i] = (struct test_work){{NULL, run}, &started, blocks ? &may_end : NULL, &ended};
}

static bool
submit(struct workers *workers, struct test_work *work)
{
    if (!workers_room(workers))
        return false;
    workers_submit(workers, &work->work, 1);
    return true;
}

/* The loop's part: a look every millisecond while work waits. */
static void
relieve_until_started(struct workers *workers, unsigned count)
{
    for (unsigned i = 0; i < 1000 && gate_count(&started) < count; i++) {
        workers_relieve(workers);
        sleep_ms(1);
    }
}

static void
all_work_is_done(void)
{
    static struct test_work work[MANY];
    struct workers *workers = workers_new(8, MANY);
    prepare(work, MANY, false);
    for (size_t i = 0; i < MANY; i++)
        CHECK(submit(workers, &work[i]));
    CHECK(gate_wait(&ended, MANY));
    CHECK(!workers_relieve(workers));
    CHECK_NUMBER(workers_room(workers), MANY);
    workers_free(workers);
}

static void
piles_are_done_and_all_threads_help(void)
{
    static struct test_work work[MANY];
    struct workers *workers = workers_new(8, MANY);
    unsigned done = 0;
    for (size_t size = 1; size <= MANY; size += 7) {
        prepare(work, size, false);
        for (size_t i = 0; i + 1 < size; i++)
            work[i].work.next = &work[i + 1].work;
        workers_submit(workers, &work[0].work, size);
        done += gate_wait(&ended, (unsigned)size) ? 1 : 0;
    }
    CHECK_NUMBER(done, (MANY + 6) / 7);
    /* Two that wait for each other need two threads, though only one is woken by the pile. */
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
        prepare(work, 2, true);
        work[0].work.next = &work[1].work;
        workers_submit(workers, &work[0].work, 2);
        CHECK(gate_wait(&started, 2));
        gate_pass(&may_end);
        CHECK(gate_wait(&ended, 2));
    }
    workers_free(workers);
}

static void
freeing_waits_for_what_was_submitted(void)
{
    static struct test_work work[MANY];
    struct workers *workers = workers_new(2, MANY);
    prepare(work, MANY, false);
    for (size_t i = 0; i < MANY; i++)
        CHECK(submit(workers, &work[i]));
    workers_free(workers);
    CHECK_NUMBER(gate_count(&ended), MANY);
    workers_free(NULL);
}

static void
a_pool_that_never_worked_can_be_freed(void)
{
    struct workers *workers = workers_new(4, 4);
    CHECK(!workers_relieve(workers));
    workers_free(workers);
}

/* No more than the machine has cores run before the pool grows; 30 are more on most machines. */
static void
the_pool_grows_when_all_threads_block(void)
{
    struct test_work work[30];
    struct workers *workers = workers_new(64, 100);
    prepare(work, COUNT_OF(work), true);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        CHECK(submit(workers, &work[i]));
    relieve_until_started(workers, COUNT_OF(work));
    CHECK_NUMBER(gate_count(&started), COUNT_OF(work));
    CHECK_NUMBER(workers_room(workers), 100);
    gate_pass(&may_end);
    CHECK(gate_wait(&ended, COUNT_OF(work)));
    workers_free(workers);
}

static void
the_pool_never_grows_beyond_its_limit(void)
{
    struct test_work work[10];
    struct workers *workers = workers_new(3, 100);
    prepare(work, COUNT_OF(work), true);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        CHECK(submit(workers, &work[i]));
    relieve_until_started(workers, 3);
    for (int i = 0; i < 30; i++) {
        CHECK(workers_relieve(workers));
        sleep_ms(1);
    }
    CHECK_NUMBER(gate_count(&started), 3);
    CHECK_NUMBER(workers_room(workers), 93);
    gate_pass(&may_end);
    CHECK(gate_wait(&ended, COUNT_OF(work)));
    workers_free(workers);
}

static void
a_full_queue_takes_no_more(void)
{
    struct test_work work[6];
    struct workers *workers = workers_new(1, 3);
    prepare(work, COUNT_OF(work), true);
    CHECK(submit(workers, &work[0]));
    CHECK(gate_wait(&started, 1));
    for (size_t i = 1; i < 4; i++)
        CHECK(submit(workers, &work[i]));
    CHECK(!submit(workers, &work[4]));
    gate_pass(&may_end);
    CHECK(gate_wait(&ended, 4));
    CHECK(submit(workers, &work[5]));
    CHECK(gate_wait(&ended, 5));
    workers_free(workers);
    CHECK_NUMBER(gate_count(&ended), 5);
}

/* An idle thread is woken although others are busy; nothing is left lying. */
static void
single_pieces_of_work_one_after_another_are_never_forgotten(void)
{
    static struct test_work work[2000];
    struct workers *workers = workers_new(4, 4);
    prepare(work, COUNT_OF(work), false);
    for (unsigned i = 0; i < COUNT_OF(work); i++) {
        bool is_done = submit(workers, &work[i]) && gate_wait(&ended, i + 1);
        CHECK(is_done);
        if (!is_done)
            break;
    }
    workers_free(workers);
}

/* ---- shrinking ---- */

/* The pool's idea of when a thread has waited for long enough comes from here. */
static atomic_llong clock_is_behind_ns;
static atomic_uint clock_was_asked;

int
clock_gettime(clockid_t clock, struct timespec *out)
{
    atomic_fetch_add(&clock_was_asked, 1);
    int failed = (int)syscall(SYS_clock_gettime, clock, out);
    long long ns = out->tv_sec * 1000000000LL + out->tv_nsec - atomic_load(&clock_is_behind_ns);
    if (clock == CLOCK_MONOTONIC)
        *out = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return failed;
}

static unsigned
count_threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        count++;
    closedir(tasks);
    return count - 2; /* "." and ".." */
}

/* As many as there are cores stay; the sanitizers have a thread of their own. */
static void
threads_that_have_had_nothing_to_do_for_a_while_end_and_the_last_sleep(void)
{
    struct test_work work[40];
    struct workers *workers = workers_new(64, 100);
    unsigned stay = count_threads() + (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store(&clock_is_behind_ns, 4980000000LL);
    prepare(work, COUNT_OF(work), true);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        CHECK(submit(workers, &work[i]));
    relieve_until_started(workers, COUNT_OF(work));
    CHECK(count_threads() >= COUNT_OF(work));
    gate_pass(&may_end);
    CHECK(gate_wait(&ended, COUNT_OF(work)));
    for (int i = 0; i < 500 && count_threads() > stay; i++)
        sleep_ms(5);
    CHECK(count_threads() <= stay);
    /* Those that stay have slept for long enough to end several times, and were not woken by that. */
    sleep_ms(100);
    unsigned asked = atomic_load(&clock_was_asked);
    sleep_ms(200);
    CHECK_NUMBER(atomic_load(&clock_was_asked), asked);
    atomic_store(&clock_is_behind_ns, 0);
    prepare(work, 1, false);
    CHECK(submit(workers, &work[0]));
    CHECK(gate_wait(&ended, 1));
    workers_free(workers);
}

/* ---- a system that has no thread to give ---- */

static atomic_bool has_no_threads;

int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
               void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &found, sizeof create);
    return atomic_load(&has_no_threads) ? EAGAIN : create(thread, attributes, function, argument);
}

static void
work_waits_while_no_thread_can_be_started(void)
{
    struct test_work work;
    struct workers *workers = workers_new(4, 10);
    prepare(&work, 1, false);
    atomic_store(&has_no_threads, true);
    CHECK(workers_submit(workers, &work.work, 1));
    CHECK(workers_relieve(workers));
    CHECK(workers_relieve(workers));
    CHECK_NUMBER(gate_count(&started), 0);
    atomic_store(&has_no_threads, false);
    relieve_until_started(workers, 1);
    CHECK(gate_wait(&ended, 1));
    workers_free(workers);
}

static void
work_for_which_there_never_was_a_thread_is_done_at_the_end(void)
{
    struct test_work work;
    struct workers *workers = workers_new(4, 10);
    prepare(&work, 1, false);
    atomic_store(&has_no_threads, true);
    CHECK(workers_submit(workers, &work.work, 1));
    workers_free(workers);
    CHECK_NUMBER(gate_count(&ended), 1);
    atomic_store(&has_no_threads, false);
}

static void
note_run(void *gate)
{
    gate_pass(gate);
}

static void
what_is_spawned_waits_while_no_thread_can_be_started(void)
{
    struct ends ends = {0};
    struct gate run_once = GATE_INIT;
    ends_open_runtime(&ends, (struct runtime_options){0});
    atomic_store(&has_no_threads, true);
    runtime_spawn(ends.runtime, note_run, &run_once);
    sleep_ms(30);
    CHECK_NUMBER(gate_count(&run_once), 0);
    atomic_store(&has_no_threads, false);
    CHECK(gate_wait(&run_once, 1));
    runtime_close(ends.runtime);
}

int
main(void)
{
    all_work_is_done();
    piles_are_done_and_all_threads_help();
    freeing_waits_for_what_was_submitted();
    a_pool_that_never_worked_can_be_freed();
    the_pool_grows_when_all_threads_block();
    the_pool_never_grows_beyond_its_limit();
    a_full_queue_takes_no_more();
    single_pieces_of_work_one_after_another_are_never_forgotten();
    threads_that_have_had_nothing_to_do_for_a_while_end_and_the_last_sleep();
    work_waits_while_no_thread_can_be_started();
    work_for_which_there_never_was_a_thread_is_done_at_the_end();
    what_is_spawned_waits_while_no_thread_can_be_started();
    return check_report("test_workers");
}
