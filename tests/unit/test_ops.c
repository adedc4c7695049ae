/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: their life in one process. */
#include "base/clock.h"
#include "ops_ends.h"
#include "store/store_ops.h"

/* Where what is logged is what the test is about. */
static const struct log silent = {.level = LOG_ERROR + 1, .fd = STDERR_FILENO};

/* ---- facts ---- */

static void
a_success_is_written_together_with_its_row(void)
{
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){0});
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK_TEXT(get(bench.store, "row/a"), "copying");
    CHECK_NUMBER(stored(&bench, "a")->state, STATE(RUNNING));
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 1));
    sleep_ms(20);
    CHECK_OK(ops_get(bench.ops, "a", &bench.arena, &record));
    CHECK_NUMBER(record->state, STATE(RUNNING));
    CHECK_NUMBER(record->done, 40);
    CHECK_NUMBER(record->total, 100);
    CHECK_TEXT(record->units, "bytes");
    uint64_t before = revision_of(bench.store);
    allow_end(&bench.job);
    record = wait_for(&bench, "a");
    CHECK_NUMBER(record->state, STATE(SUCCEEDED));
    CHECK_NUMBER(record->done, 100);
    CHECK(record->updated_ns >= record->started_ns);
    CHECK_TEXT(get(bench.store, "row/a"), "ready");
    CHECK_NUMBER(revision_of(bench.store) - before, 1);
    CHECK_NUMBER(read_count(&bench.job, &bench.job.freed), 1);
    bench_close(&bench);
}

static void
a_failure_tells_why_and_takes_its_row_away(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){0});
    bench.job.fails = true;
    allow_end(&bench.job);
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    operation_record *record = wait_for(&bench, "a");
    CHECK_NUMBER(record->state, STATE(FAILED));
    CHECK_NUMBER(record->error_code, CODE_RESOURCE_EXHAUSTED);
    CHECK_TEXT(record->error_message, "the disk is full");
    CHECK_TEXT(get(bench.store, "row/a"), NULL);
    bench_close(&bench);
}

static void
a_start_that_the_store_refuses_leaves_nothing(void)
{
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){0});
    CHECK_OK(put(bench.store, "row/a", "another's", STORE_ANY, NULL));
    CHECK_CODE(start(bench.ops, &bench.job, "a"), CODE_ABORTED);
    CHECK_CODE(ops_get(bench.ops, "a", &bench.arena, &record), CODE_NOT_FOUND);
    CHECK_NUMBER(bench.job.freed, 1);
    CHECK_NUMBER(bench.job.runs, 0);
    bench_close(&bench);
}

static void
an_end_that_does_not_fit_the_store_is_a_failure(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){0});
    bench.ops->options.log = &silent;
    struct ops_spec spec = spec_for(&bench.job, "a");
    ((struct piece *)spec.work.context)->expected = 12345;
    allow_end(&bench.job);
    CHECK_OK(ops_start(bench.ops, &spec));
    operation_record *record = wait_for(&bench, "a");
    CHECK_NUMBER(record->state, STATE(FAILED));
    CHECK_NUMBER(record->error_code, CODE_ABORTED);
    bench_close(&bench);
}

static atomic_int failures_left;
static struct error *(*real_write)(struct store *, const struct store_change *, size_t, uint64_t *);

static struct error *
write_or_be_full(struct store *store, const struct store_change *changes, size_t count,
                 uint64_t *revision)
{
    if (atomic_fetch_sub(&failures_left, 1) > 0)
        return error_new(CODE_RESOURCE_EXHAUSTED, "no space left");
    return real_write(store, changes, count, revision);
}

static void
an_end_waits_for_a_store_that_is_full(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){.save_ms = 1000000});
    bench.ops->options.log = &silent;
    struct store_ops ops = *bench.store->ops;
    real_write = ops.write;
    ops.write = write_or_be_full;
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 1));
    atomic_store(&failures_left, 1);
    bench.store->ops = &ops;
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK_TEXT(get(bench.store, "row/a"), "ready");
    CHECK(atomic_load(&failures_left) < 0);
    bench_close(&bench);
}

static void
no_more_run_at_a_time_than_allowed(void)
{
    struct bench bench;
    char id[8];
    bench_open(&bench, (struct ops_options){.max_running = 3});
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "%02d", i);
        CHECK_OK(start(bench.ops, &bench.job, id));
    }
    CHECK(wait_for_count(&bench.job, &bench.job.running, 3));
    sleep_ms(50);
    CHECK_NUMBER(read_count(&bench.job, &bench.job.running), 3);
    operation_record *waiting;
    CHECK_OK(ops_get(bench.ops, "09", &bench.arena, &waiting));
    CHECK_NUMBER(waiting->state, STATE(RUNNING));
    CHECK_NUMBER(waiting->done, 0);
    allow_end(&bench.job);
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "%02d", i);
        CHECK_NUMBER(wait_for(&bench, id)->state, STATE(SUCCEEDED));
    }
    CHECK_NUMBER(bench.job.most_running, 3);
    CHECK_NUMBER(bench.job.runs, 10);
    bench_close(&bench);
}

/* Rests until it may end, as a transfer whose source is lost. */
static struct error *
rest_until_allowed(void *context, const struct progress *progress)
{
    struct job *job = ((struct piece *)context)->job;
    for (;;) {
        pthread_mutex_lock(&job->lock);
        job->runs++;
        bool may_end = job->may_end;
        pthread_mutex_unlock(&job->lock);
        if (may_end)
            return NULL;
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "told to end");
        progress_rest(progress, 10);
    }
}

/* Pauses, as a move that must end soon. */
static struct error *
pause_until_allowed(void *context, const struct progress *progress)
{
    struct job *job = ((struct piece *)context)->job;
    for (;;) {
        pthread_mutex_lock(&job->lock);
        job->runs++;
        bool may_end = job->may_end;
        pthread_mutex_unlock(&job->lock);
        if (may_end)
            return NULL;
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "told to end");
        progress_pause(progress, 10);
    }
}

static void
start_resting(struct bench *bench, struct job *job, const char *id)
{
    struct ops_spec spec = spec_for(job, id);
    spec.work.run = rest_until_allowed;
    CHECK_OK(ops_start(bench->ops, &spec));
}

static void
those_that_rest_hold_up_no_others(void)
{
    struct bench bench;
    struct job resting;
    char id[16];
    job_init(&resting);
    bench_open(&bench, (struct ops_options){.max_running = 2});
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "rest-%d", i);
        start_resting(&bench, &resting, id);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "work-%d", i);
        CHECK_OK(start(bench.ops, &bench.job, id));
    }
    CHECK(wait_for_count(&bench.job, &bench.job.running, 2));
    sleep_ms(50);
    CHECK_NUMBER(read_count(&bench.job, &bench.job.most_running), 2);
    /* All turns are taken: one that rests can be cancelled all the same. */
    CHECK_OK(ops_cancel(bench.ops, "rest-0"));
    CHECK_NUMBER(wait_for(&bench, "rest-0")->state, STATE(CANCELLED));
    allow_end(&bench.job);
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "work-%d", i);
        CHECK_NUMBER(wait_for(&bench, id)->state, STATE(SUCCEEDED));
    }
    allow_end(&resting);
    for (int i = 1; i < 6; i++) {
        snprintf(id, sizeof id, "rest-%d", i);
        CHECK_NUMBER(wait_for(&bench, id)->state, STATE(SUCCEEDED));
    }
    bench_close(&bench);
}

/* Moves of volumes that nobody releases may be many. */
static void
however_many_rest_they_hold_up_no_others(void)
{
    enum { MANY = 200 };
    struct bench bench;
    struct job resting;
    char id[16];
    job_init(&resting);
    bench_open(&bench, (struct ops_options){.max_running = 2});
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "rest-%d", i);
        start_resting(&bench, &resting, id);
    }
    CHECK_OK(start(bench.ops, &bench.job, "work-1"));
    CHECK_OK(start(bench.ops, &bench.job, "work-2"));
    CHECK(wait_for_count(&bench.job, &bench.job.running, 2));
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "work-1")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(wait_for(&bench, "work-2")->state, STATE(SUCCEEDED));
    allow_end(&resting);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "rest-%d", i);
        CHECK_NUMBER(wait_for(&bench, id)->state, STATE(SUCCEEDED));
    }
    bench_close(&bench);
}

static void
those_that_pause_go_on_whatever_else_works(void)
{
    struct bench bench;
    struct job pausing;
    job_init(&pausing);
    bench_open(&bench, (struct ops_options){.max_running = 1});
    struct ops_spec spec = spec_for(&pausing, "pause");
    spec.work.run = pause_until_allowed;
    CHECK_OK(ops_start(bench.ops, &spec));
    CHECK(wait_for_count(&pausing, &pausing.runs, 1));
    CHECK_OK(start(bench.ops, &bench.job, "work"));
    CHECK(wait_for_count(&bench.job, &bench.job.running, 1));
    allow_end(&pausing);
    CHECK_NUMBER(wait_for(&bench, "pause")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(read_count(&bench.job, &bench.job.running), 1);
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "work")->state, STATE(SUCCEEDED));
    bench_close(&bench);
}

/* Those that have begun go on before others begin, and ops_close does not wait for their time. */
static void
those_that_rest_get_their_turn_and_end_with_the_process(void)
{
    struct bench bench;
    struct job resting;
    char id[16];
    job_init(&resting);
    bench_open(&bench, (struct ops_options){.max_running = 1});
    start_resting(&bench, &resting, "rest");
    CHECK(wait_for_count(&resting, &resting.runs, 3));
    allow_end(&bench.job);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "work-%d", i);
        CHECK_OK(start(bench.ops, &bench.job, id));
    }
    unsigned runs = read_count(&resting, &resting.runs);
    CHECK(wait_for_count(&resting, &resting.runs, runs + 3));
    CHECK_NUMBER(wait_for(&bench, "work-49")->state, STATE(SUCCEEDED));
    bench_close(&bench);
    CHECK_NUMBER(resting.freed, 1);
}

static void *
start_and_wait(void *context)
{
    struct bench *bench = context;
    struct arena arena;
    operation_record *record = NULL;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct ops_spec spec = spec_for(&bench->job, "one");
    EXPECT(code_of(ops_start(bench->ops, &spec)) == CODE_OK);
    EXPECT(code_of(ops_wait(bench->ops, "one", PATIENCE_MS, &arena, &record)) == CODE_OK);
    EXPECT(record && record->state == STATE(SUCCEEDED));
    arena_clear(&arena);
    return NULL;
}

static void
the_same_id_is_joined_and_never_run_twice(void)
{
    struct bench bench;
    pthread_t threads[8];
    bench_open(&bench, (struct ops_options){0});
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_create(&threads[i], NULL, start_and_wait, &bench);
    CHECK(wait_for_count(&bench.job, &bench.job.freed, COUNT_OF(threads) - 1));
    allow_end(&bench.job);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    CHECK_NUMBER(bench.job.runs, 1);
    CHECK_NUMBER(bench.job.freed, COUNT_OF(threads));
    CHECK_NUMBER(thread_failures, 0);
    bench_close(&bench);
}

static void
a_wait_ends_at_its_time_or_at_the_end(void)
{
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){0});
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    double before = now_ms();
    CHECK_OK(ops_wait(bench.ops, "a", 60, &bench.arena, &record));
    CHECK_NUMBER(record->state, STATE(RUNNING));
    CHECK(now_ms() - before >= 59);
    allow_end(&bench.job);
    before = now_ms();
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK(now_ms() - before < PATIENCE_MS / 2);
    CHECK_CODE(ops_wait(bench.ops, "nothing", 1000, &bench.arena, &record), CODE_NOT_FOUND);
    bench_close(&bench);
}

static void
running_and_waiting_ones_can_be_cancelled(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){.max_running = 1});
    CHECK_OK(start(bench.ops, &bench.job, "runs"));
    CHECK(wait_for_count(&bench.job, &bench.job.running, 1));
    CHECK_OK(start(bench.ops, &bench.job, "waits"));
    CHECK_OK(ops_cancel(bench.ops, "waits"));
    CHECK_NUMBER(stored(&bench, "waits")->state, STATE(CANCELLED));
    CHECK_TEXT(get(bench.store, "row/waits"), NULL);
    CHECK_NUMBER(read_count(&bench.job, &bench.job.running), 1);
    CHECK_OK(ops_cancel(bench.ops, "runs"));
    operation_record *record = wait_for(&bench, "runs");
    CHECK_NUMBER(record->state, STATE(CANCELLED));
    CHECK_NUMBER(record->error_code, CODE_CANCELLED);
    CHECK_TEXT(get(bench.store, "row/runs"), NULL);
    CHECK_OK(ops_cancel(bench.ops, "runs"));
    CHECK_OK(ops_cancel(bench.ops, "waits"));
    CHECK_CODE(ops_cancel(bench.ops, "nothing"), CODE_NOT_FOUND);
    CHECK_NUMBER(bench.job.runs, 1);
    CHECK_NUMBER(bench.job.settled, 2);
    CHECK_NUMBER(bench.job.freed, 2);
    bench_close(&bench);
}

static void
a_cancel_that_is_not_durable_is_an_error(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){.save_ms = 1000000});
    bench.ops->options.log = &silent;
    struct store_ops ops = *bench.store->ops;
    real_write = ops.write;
    ops.write = write_or_be_full;
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK(wait_for_count(&bench.job, &bench.job.running, 1));
    atomic_store(&failures_left, 1000);
    bench.store->ops = &ops;
    CHECK_CODE(ops_cancel(bench.ops, "a"), CODE_RESOURCE_EXHAUSTED);
    atomic_store(&failures_left, 0);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(CANCELLED));
    bench_close(&bench);
}

static void
what_has_ended_cannot_be_cancelled_and_can_be_started_anew(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){0});
    allow_end(&bench.job);
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK_OK(ops_cancel(bench.ops, "a"));
    CHECK_NUMBER(stored(&bench, "a")->state, STATE(SUCCEEDED));
    struct ops_spec again = spec_for(&bench.job, "a");
    CHECK_OK(ops_start(bench.ops, &again));
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(bench.job.runs, 2);
    bench_close(&bench);
}

static void *
cancel_many(void *context)
{
    struct bench *bench = context;
    char id[8];
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "%02d", i);
        enum code code = code_of(ops_cancel(bench->ops, id));
        EXPECT(code == CODE_OK || code == CODE_NOT_FOUND);
    }
    return NULL;
}

static void
cancelling_from_many_threads_ends_each_once(void)
{
    struct bench bench;
    pthread_t threads[3];
    char id[8];
    bench_open(&bench, (struct ops_options){.max_running = 4, .save_ms = 1});
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_create(&threads[i], NULL, cancel_many, &bench);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "%02d", i);
        CHECK_OK(start(bench.ops, &bench.job, id));
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    cancel_many(&bench);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "%02d", i);
        CHECK_NUMBER(wait_for(&bench, id)->state, STATE(CANCELLED));
        CHECK_NUMBER(stored(&bench, id)->state, STATE(CANCELLED));
    }
    CHECK_NUMBER(bench.job.settled, 50);
    CHECK_NUMBER(thread_failures, 0);
    bench_close(&bench);
}

static void
lists_come_in_pages(void)
{
    struct bench bench;
    struct ops_page page;
    bench_open(&bench, (struct ops_options){0});
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK_OK(start(bench.ops, &bench.job, "b"));
    CHECK_OK(start(bench.ops, &bench.job, "c"));
    CHECK_OK(ops_list(bench.ops, NULL, 2, &bench.arena, &page));
    CHECK_NUMBER(page.count, 2);
    CHECK(page.has_more);
    CHECK_TEXT(page.records[1]->id, "b");
    CHECK_OK(ops_list(bench.ops, "b", 2, &bench.arena, &page));
    CHECK_NUMBER(page.count, 1);
    CHECK(!page.has_more);
    CHECK_TEXT(page.records[0]->id, "c");
    bench_close(&bench);
}

static operation_record *
next_of(struct ops_watch *watch, struct arena *arena)
{
    operation_record *record = NULL;
    CHECK_OK(ops_watch_next(watch, PATIENCE_MS, arena, &record));
    return record;
}

static void
a_watch_tells_of_start_progress_and_end(void)
{
    struct bench bench;
    struct ops_watch *one, *all;
    operation_record *record;
    bench_open(&bench, (struct ops_options){.save_ms = 20});
    CHECK_CODE(ops_watch_open(bench.ops, "a", &one), CODE_NOT_FOUND);
    CHECK_OK(ops_watch_open(bench.ops, NULL, &all));
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK_OK(ops_watch_open(bench.ops, "a", &one));
    CHECK_NUMBER(next_of(one, &bench.arena)->state, STATE(RUNNING));
    CHECK_TEXT(next_of(all, &bench.arena)->id, "a");
    record = next_of(one, &bench.arena);
    CHECK_NUMBER(record->state, STATE(RUNNING));
    CHECK_NUMBER(record->done, 40);
    allow_end(&bench.job);
    do
        record = next_of(one, &bench.arena);
    while (record && record->state == STATE(RUNNING));
    CHECK(record && record->state == STATE(SUCCEEDED));
    do
        record = next_of(all, &bench.arena);
    while (record && record->state == STATE(RUNNING));
    CHECK(record && record->state == STATE(SUCCEEDED));
    CHECK_CODE(ops_watch_next(all, 10, &bench.arena, &record), CODE_DEADLINE_EXCEEDED);
    ops_watch_close(one);
    ops_watch_close(all);
    CHECK_OK(ops_watch_open(bench.ops, "a", &one));
    CHECK_NUMBER(next_of(one, &bench.arena)->state, STATE(SUCCEEDED));
    ops_watch_close(one);
    bench_close(&bench);
}

static void
a_watch_that_fell_behind_misses_no_end(void)
{
    struct bench bench;
    struct ops_watch *watch;
    bench_open(&bench, (struct ops_options){0});
    CHECK_OK(start(bench.ops, &bench.job, "a"));
    CHECK_OK(ops_watch_open(bench.ops, NULL, &watch));
    CHECK_NUMBER(next_of(watch, &bench.arena)->state, STATE(RUNNING));
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    for (int i = 0; i < 1500; i++) /* more than the store remembers */
        CHECK_OK(put(bench.store, "other", "x", STORE_ANY, NULL));
    operation_record *record = next_of(watch, &bench.arena);
    CHECK_TEXT(record->id, "a");
    CHECK_NUMBER(record->state, STATE(SUCCEEDED));
    ops_watch_close(watch);
    bench_close(&bench);
}

/* ---- expiry ---- */

static void
put_ended(struct bench *bench, const char *id, int64_t age_seconds)
{
    operation_record record;
    skycap__records__operation_record__init(&record);
    record.id = (char *)id;
    record.state = STATE(SUCCEEDED);
    record.updated_ns = clock_unix_ns() - age_seconds * 1000000000;
    struct store_change change = ops_change(&record, &bench->arena);
    CHECK_OK(store_write(bench->store, &change, 1, NULL));
}

static void
ended_ones_go_after_a_day(void)
{
    struct bench bench;
    struct ops_page page;
    bench_open(&bench, (struct ops_options){0});
    put_ended(&bench, "old", 24 * 60 * 60 + 60);
    put_ended(&bench, "young", 24 * 60 * 60 - 60);
    CHECK_OK(ops_list(bench.ops, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 1);
    CHECK_TEXT(page.records[0]->id, "young");
    bench_close(&bench);
}

static void
of_too_many_the_first_go(void)
{
    struct bench bench;
    struct ops_page page;
    char id[16];
    bench_open(&bench, (struct ops_options){.max_ended = 200});
    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof id, "%04d", i);
        put_ended(&bench, id, 10);
    }
    CHECK_OK(start(bench.ops, &bench.job, "0000-runs"));
    CHECK_OK(ops_list(bench.ops, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 181);
    CHECK_TEXT(page.records[0]->id, "0000-runs");
    CHECK_TEXT(page.records[1]->id, "0120");
    allow_end(&bench.job);
    wait_for(&bench, "0000-runs");
    bench_close(&bench);
}

int
main(void)
{
    a_success_is_written_together_with_its_row();
    a_failure_tells_why_and_takes_its_row_away();
    a_start_that_the_store_refuses_leaves_nothing();
    an_end_that_does_not_fit_the_store_is_a_failure();
    an_end_waits_for_a_store_that_is_full();
    no_more_run_at_a_time_than_allowed();
    those_that_rest_hold_up_no_others();
    however_many_rest_they_hold_up_no_others();
    those_that_pause_go_on_whatever_else_works();
    those_that_rest_get_their_turn_and_end_with_the_process();
    the_same_id_is_joined_and_never_run_twice();
    a_wait_ends_at_its_time_or_at_the_end();
    running_and_waiting_ones_can_be_cancelled();
    a_cancel_that_is_not_durable_is_an_error();
    what_has_ended_cannot_be_cancelled_and_can_be_started_anew();
    cancelling_from_many_threads_ends_each_once();
    lists_come_in_pages();
    a_watch_tells_of_start_progress_and_end();
    a_watch_that_fell_behind_misses_no_end();
    ended_ones_go_after_a_day();
    of_too_many_the_first_go();
    return check_report("test_ops");
}
