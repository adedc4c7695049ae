/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: what a stop or a crash leaves for the next process. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "ops_ends.h"

/* ---- another process ---- */

struct resumed {
    struct ops *ops;
    struct job *job;
    unsigned count;
};

static struct error *
resume_test(void *context, const operation_record *record)
{
    struct resumed *resumed = context;
    struct ops_spec spec = {.id = record->id, .work = work_for(resumed->job, record->id)};
    resumed->count++;
    spec.resumed = record;
    return ops_start(resumed->ops, &spec);
}

static const struct ops_kind test_kinds[] = {{"test", resume_test}};

static void
what_a_stop_interrupts_goes_on_at_the_next_start(void)
{
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){.max_running = 1});
    CHECK_OK(start(bench.ops, &bench.job, "runs"));
    CHECK(wait_for_count(&bench.job, &bench.job.running, 1));
    CHECK_OK(start(bench.ops, &bench.job, "waits"));
    int64_t started_ns = stored(&bench, "runs")->started_ns;
    ops_stop(bench.ops);
    CHECK_OK(ops_wait(bench.ops, "runs", PATIENCE_MS, &bench.arena, &record));
    CHECK_NUMBER(record->state, STATE(RUNNING));
    CHECK_CODE(start(bench.ops, &bench.job, "late"), CODE_UNAVAILABLE);
    ops_close(bench.ops);
    CHECK_NUMBER(bench.job.settled, 0);
    CHECK_NUMBER(bench.job.freed, 3);
    CHECK_TEXT(get(bench.store, "row/runs"), "copying");
    bench.ops = ops_open(&(struct ops_options){.store = bench.store, .log = &quiet});
    struct resumed resumed = {bench.ops, &bench.job, 0};
    CHECK_OK(ops_resume(bench.ops, test_kinds, COUNT_OF(test_kinds), &resumed));
    CHECK_OK(ops_resume(bench.ops, test_kinds, COUNT_OF(test_kinds), &resumed));
    CHECK_NUMBER(resumed.count, 2);
    allow_end(&bench.job);
    record = wait_for(&bench, "runs");
    CHECK_NUMBER(record->state, STATE(SUCCEEDED));
    CHECK(record->started_ns == started_ns);
    CHECK_TEXT(record->description, "a test");
    CHECK_NUMBER(wait_for(&bench, "waits")->state, STATE(SUCCEEDED));
    CHECK_TEXT(get(bench.store, "row/waits"), "ready");
    bench_close(&bench);
}

static void
what_a_newer_program_began_stays_as_it_is(void)
{
    struct bench bench;
    operation_record *record, stale;
    bench_open(&bench, (struct ops_options){0});
    skycap__records__operation_record__init(&stale);
    stale.id = (char *)"a";
    stale.kind = (char *)"of-a-newer-program";
    struct store_change change = ops_change(&stale, &bench.arena);
    CHECK_OK(store_write(bench.store, &change, 1, NULL));
    struct resumed resumed = {bench.ops, &bench.job, 0};
    CHECK_OK(ops_resume(bench.ops, test_kinds, COUNT_OF(test_kinds), &resumed));
    CHECK_NUMBER(resumed.count, 0);
    CHECK_OK(ops_get(bench.ops, "a", &bench.arena, &record));
    CHECK_NUMBER(record->state, STATE(RUNNING));
    CHECK_SAYS(ops_cancel(bench.ops, "a"), CODE_FAILED_PRECONDITION, "by a newer version");
    CHECK_NUMBER(stored(&bench, "a")->state, STATE(RUNNING));

    /* An unknown state, of long ago: the sweep of ended ones leaves it. */
    stale.kind = (char *)test_kinds[0].name;
    stale.state = (Skycap__Records__OperationRecord__State)17;
    stale.updated_ns = 1;
    change = ops_change(&stale, &bench.arena);
    CHECK_OK(store_write(bench.store, &change, 1, NULL));
    ops_sweep_if_due(bench.ops);
    CHECK_SAYS(ops_cancel(bench.ops, "a"), CODE_FAILED_PRECONDITION, "by a newer version");
    CHECK_NUMBER(stored(&bench, "a")->state, 17);
    bench_close(&bench);
}

/* Starts two operations, cancels one whose work does not listen, tells that, and waits to be killed. */
static atomic_bool deaf_runs;

static struct error *
run_deaf(void *context, const struct progress *progress)
{
    (void)context, (void)progress;
    atomic_store(&deaf_runs, true);
    while (pause())
        continue;
    return NULL;
}

static void
be_the_one_that_crashes(int told)
{
    struct job job;
    job_init(&job);
    struct store *store = open_store(url_of("crash"));
    struct ops *ops = ops_open(&(struct ops_options){.store = store, .log = &quiet});
    struct ops_spec deaf = spec_for(&job, "cancelled");
    deaf.work.run = run_deaf;
    bool is_good =
        code_of(start(ops, &job, "a")) == CODE_OK && code_of(ops_start(ops, &deaf)) == CODE_OK;
    while (read_count(&job, &job.running) < 1 || !atomic_load(&deaf_runs))
        sleep_ms(2);
    is_good = is_good && code_of(ops_cancel(ops, "cancelled")) == CODE_OK;
    if (write(told, is_good ? "y" : "n", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void
crash_in_the_midst(void)
{
    int ends[2];
    char answer = 'n';
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0)
        be_the_one_that_crashes(ends[1]);
    close(ends[1]);
    CHECK(read(ends[0], &answer, 1) == 1);
    CHECK(answer == 'y');
    close(ends[0]);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
}

static void
what_a_crash_interrupts_goes_on_and_what_was_cancelled_does_not(void)
{
    struct bench bench;
    make_test_directory();
    crash_in_the_midst();
    bench.store = open_store(url_of("crash"));
    bench.ops = ops_open(&(struct ops_options){.store = bench.store, .log = &quiet});
    arena_init(&bench.arena, NULL, 0, SIZE_MAX);
    job_init(&bench.job);
    CHECK_NUMBER(stored(&bench, "a")->state, STATE(RUNNING));
    CHECK_NUMBER(stored(&bench, "cancelled")->state, STATE(RUNNING));
    struct resumed resumed = {bench.ops, &bench.job, 0};
    CHECK_OK(ops_resume(bench.ops, test_kinds, COUNT_OF(test_kinds), &resumed));
    CHECK_NUMBER(resumed.count, 2);
    CHECK_NUMBER(wait_for(&bench, "cancelled")->state, STATE(CANCELLED));
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK_TEXT(get(bench.store, "row/a"), "ready");
    bench_close(&bench);
    remove_test_directory();
}

int
main(void)
{
    what_a_crash_interrupts_goes_on_and_what_was_cancelled_does_not(); /* forks: before threads */
    what_a_stop_interrupts_goes_on_at_the_next_start();
    what_a_newer_program_began_stays_as_it_is();
    return check_report("test_ops_resume");
}
