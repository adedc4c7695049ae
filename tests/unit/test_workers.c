/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/workers.c */
#include "rpc/workers.h"

#include <dirent.h>
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
        CHECK(workers_submit(workers, &work[i].work));
    CHECK(gate_wait(&ended, MANY));
    CHECK(!workers_relieve(workers));
    CHECK(!workers_are_behind(workers));
    workers_free(workers);
}

static void
freeing_waits_for_what_was_submitted(void)
{
    static struct test_work work[MANY];
    struct workers *workers = workers_new(2, MANY);
    prepare(work, MANY, false);
    for (size_t i = 0; i < MANY; i++)
        CHECK(workers_submit(workers, &work[i].work));
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
        CHECK(workers_submit(workers, &work[i].work));
    relieve_until_started(workers, COUNT_OF(work));
    CHECK_NUMBER(gate_count(&started), COUNT_OF(work));
    CHECK(!workers_are_behind(workers));
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
        CHECK(workers_submit(workers, &work[i].work));
    for (int i = 0; i < 30; i++) {
        CHECK(workers_relieve(workers));
        sleep_ms(1);
    }
    CHECK_NUMBER(gate_count(&started), 3);
    CHECK(workers_are_behind(workers));
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
    CHECK(workers_submit(workers, &work[0].work));
    CHECK(gate_wait(&started, 1));
    for (size_t i = 1; i < 4; i++)
        CHECK(workers_submit(workers, &work[i].work));
    CHECK(!workers_submit(workers, &work[4].work));
    gate_pass(&may_end);
    CHECK(gate_wait(&ended, 4));
    CHECK(workers_submit(workers, &work[5].work));
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
        bool is_done = workers_submit(workers, &work[i].work) && gate_wait(&ended, i + 1);
        CHECK(is_done);
        if (!is_done)
            break;
    }
    workers_free(workers);
}

/* ---- shrinking ---- */

/* The pool's idea of when a thread has waited for long enough comes from here. */
static atomic_llong clock_is_behind_ns;

int
clock_gettime(clockid_t clock, struct timespec *out)
{
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
threads_that_have_had_nothing_to_do_for_a_while_end(void)
{
    struct test_work work[40];
    struct workers *workers = workers_new(64, 100);
    unsigned stay = count_threads() + (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store(&clock_is_behind_ns, 4980000000LL);
    prepare(work, COUNT_OF(work), true);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        CHECK(workers_submit(workers, &work[i].work));
    relieve_until_started(workers, COUNT_OF(work));
    CHECK(count_threads() >= COUNT_OF(work));
    gate_pass(&may_end);
    CHECK(gate_wait(&ended, COUNT_OF(work)));
    for (int i = 0; i < 500 && count_threads() > stay; i++)
        sleep_ms(5);
    CHECK(count_threads() <= stay);
    atomic_store(&clock_is_behind_ns, 0);
    prepare(work, 1, false);
    CHECK(workers_submit(workers, &work[0].work));
    CHECK(gate_wait(&ended, 1));
    workers_free(workers);
}

int
main(void)
{
    all_work_is_done();
    freeing_waits_for_what_was_submitted();
    a_pool_that_never_worked_can_be_freed();
    the_pool_grows_when_all_threads_block();
    the_pool_never_grows_beyond_its_limit();
    a_full_queue_takes_no_more();
    single_pieces_of_work_one_after_another_are_never_forgotten();
    threads_that_have_had_nothing_to_do_for_a_while_end();
    return check_report("test_workers");
}
