/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: progress, rate, cursor, and whose turn it is. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "ops_ends.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- work that reports what the test says ---- */

struct step {
    uint64_t done;
    uint64_t total;
    unsigned wait_ms; /* after it */
};

struct script {
    const struct step *steps;
    size_t count;
    const char *cursor; /* that it saves; NULL: none */
    struct job *job;    /* that it waits for at its end */
};

static struct error *
run_script(void *context, const struct progress *progress)
{
    const struct script *script = context;
    for (size_t i = 0; i < script->count; i++) {
        progress->report(progress->context, script->steps[i].done, script->steps[i].total);
        sleep_ms(script->steps[i].wait_ms);
    }
    if (script->cursor)
        CHECK_OK(ops_save_cursor(progress, script->cursor, strlen(script->cursor)));
    pthread_mutex_lock(&script->job->lock);
    script->job->runs++;
    pthread_mutex_unlock(&script->job->lock);
    while (!read_count(script->job, &script->job->settled))
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "told to end");
        else
            sleep_ms(2);
    return NULL;
}

static void
start_script(struct bench *bench, struct script *script, const char *id)
{
    script->job = &bench->job;
    struct ops_spec spec = spec_for(&bench->job, id);
    spec.work.free(spec.work.context);
    spec.work = (struct ops_work){.context = script, .run = run_script};
    CHECK_OK(ops_start(bench->ops, &spec));
}

/* Lets the scripts of the bench end. */
static void
end_scripts(struct bench *bench)
{
    pthread_mutex_lock(&bench->job.lock);
    bench->job.settled = 1;
    pthread_mutex_unlock(&bench->job.lock);
}

/* ---- facts ---- */

static void
what_was_done_is_the_total_in_the_end_if_that_was_unknown(void)
{
    static const struct step steps[] = {{10, 0, 0}, {60, 0, 0}};
    struct script script = {steps, COUNT_OF(steps), NULL, NULL};
    struct bench bench;
    bench_open(&bench, (struct ops_options){0});
    start_script(&bench, &script, "a");
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 1));
    end_scripts(&bench);
    operation_record *record = wait_for(&bench, "a");
    CHECK_NUMBER(record->state, STATE(SUCCEEDED));
    CHECK_NUMBER(record->done, 60);
    CHECK_NUMBER(record->total, 60);
    bench_close(&bench);
}

static void
done_never_falls_and_never_exceeds_the_total(void)
{
    static const struct step steps[] = {{10, 100, 0}, {60, 100, 0}, {30, 100, 0}};
    static const struct step more[] = {{130, 100, 0}};
    struct script falling = {steps, COUNT_OF(steps), NULL, NULL};
    struct script exceeding = {more, COUNT_OF(more), NULL, NULL};
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){0});
    start_script(&bench, &falling, "a");
    start_script(&bench, &exceeding, "b");
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 2));
    CHECK_OK(ops_get(bench.ops, "a", &bench.arena, &record));
    CHECK_NUMBER(record->done, 60);
    CHECK_OK(ops_get(bench.ops, "b", &bench.arena, &record));
    CHECK_NUMBER(record->done, 130);
    CHECK_NUMBER(record->total, 130);
    CHECK_NUMBER(ops_percent(record), 99);
    end_scripts(&bench);
    record = wait_for(&bench, "a");
    CHECK_NUMBER(record->done, record->total);
    CHECK_NUMBER(ops_percent(record), 100);
    CHECK_NUMBER(wait_for(&bench, "b")->state, STATE(SUCCEEDED));
    bench_close(&bench);
}

static void
the_rate_is_measured_and_tells_the_time_left(void)
{
    static const struct step steps[] = {{0, 100000, 1100}, {1100, 100000, 1100}, {2200, 100000, 0}};
    struct script script = {steps, COUNT_OF(steps), NULL, NULL};
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){0});
    start_script(&bench, &script, "a");
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 1));
    CHECK_OK(ops_get(bench.ops, "a", &bench.arena, &record));
    /* 1000 a second; a loaded machine sleeps longer. */
    CHECK(record->rate > 100 && record->rate <= 1000);
    CHECK_NUMBER(ops_seconds_left(record), (100000 - 2200) / record->rate);
    CHECK_NUMBER(record->phase, OPERATION_PHASE(WORKING));
    end_scripts(&bench);
    CHECK_NUMBER(ops_seconds_left(wait_for(&bench, "a")), -1);
    bench_close(&bench);
}

static void
a_cursor_is_durable_and_gone_after_the_end(void)
{
    struct script script = {NULL, 0, "file 12, block 7", NULL};
    struct bench bench;
    bench_open(&bench, (struct ops_options){.save_ms = 1000000});
    start_script(&bench, &script, "a");
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 1));
    operation_record *record = stored(&bench, "a");
    CHECK_NUMBER(record->cursor.len, strlen(script.cursor));
    CHECK(memcmp(record->cursor.data, script.cursor, record->cursor.len) == 0);
    end_scripts(&bench);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(stored(&bench, "a")->cursor.len, 0);
    bench_close(&bench);
}

static void
resumed_work_has_its_cursor(void)
{
    struct script script = {NULL, 0, "here", NULL};
    struct bench bench;
    operation_record *record;
    bench_open(&bench, (struct ops_options){0});
    start_script(&bench, &script, "a");
    CHECK(wait_for_count(&bench.job, &bench.job.runs, 1));
    ops_close(bench.ops);
    bench.ops = ops_open(&(struct ops_options){.store = bench.store, .log = &quiet});
    record = stored(&bench, "a");
    CHECK_NUMBER(record->state, STATE(RUNNING));
    struct ops_spec spec = {.id = "a", .work = work_for(&bench.job, "a"), .resumed = record};
    CHECK_OK(ops_start(bench.ops, &spec));
    CHECK_OK(ops_get(bench.ops, "a", &bench.arena, &record));
    CHECK_NUMBER(record->cursor.len, 4);
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    bench_close(&bench);
}

static void
work_without_progress_for_a_minute_is_stalled(void)
{
    operation_record record = SKYCAP__RECORDS__OPERATION_RECORD__INIT;
    record.phase = OPERATION_PHASE(WORKING);
    record.advanced_ns = clock_unix_ns() - 59 * SECOND_NS;
    CHECK(!ops_is_stalled(&record));
    record.advanced_ns -= 2 * SECOND_NS;
    CHECK(ops_is_stalled(&record));
    record.phase = OPERATION_PHASE(WAITING);
    CHECK(!ops_is_stalled(&record));
    record.phase = OPERATION_PHASE(WORKING);
    record.state = STATE(SUCCEEDED);
    CHECK(!ops_is_stalled(&record));
}

/* How often the log says it. */
static unsigned
count_lines(int log, const char *part)
{
    static char text[65536];
    unsigned count = 0;
    ssize_t size = pread(log, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

static operation_record *
look(struct bench *bench, const char *id)
{
    operation_record *record;
    CHECK_OK(ops_get(bench->ops, id, &bench->arena, &record));
    return record;
}

static bool
becomes_stalled(struct bench *bench, const char *id)
{
    for (int i = 0; i < PATIENCE_MS && !ops_is_stalled(look(bench, id)); i++)
        sleep_ms(1);
    return ops_is_stalled(look(bench, id));
}

/* Its own reports are in the hand of the test. */
struct hand {
    const struct progress *progress;
    atomic_bool has_begun, may_end;
};

static struct error *
run_by_hand(void *context, const struct progress *progress)
{
    struct hand *hand = context;
    hand->progress = progress;
    atomic_store(&hand->has_begun, true);
    while (!atomic_load(&hand->may_end))
        sleep_ms(1);
    return NULL;
}

static void
start_by_hand(struct bench *bench, struct hand *hand)
{
    struct ops_spec spec = spec_for(&bench->job, "a");
    spec.work.free(spec.work.context);
    spec.work = (struct ops_work){.context = hand, .run = run_by_hand};
    CHECK_OK(ops_start(bench->ops, &spec));
    while (!atomic_load(&hand->has_begun))
        sleep_ms(1);
}

static void
report_by_hand(const struct hand *hand, uint64_t done)
{
    hand->progress->report(hand->progress->context, done, 1000);
}

static void
work_that_stalls_is_told_once_until_it_goes_on(void)
{
    struct bench bench;
    struct hand hand = {0};
    char path[] = "/tmp/skycap-stall-XXXXXX";
    struct log log = {.level = LOG_WARN, .fd = mkstemp(path)};
    struct ops_counts counts[OPS_MOST_KINDS + 1];
    bench_open(&bench, (struct ops_options){.stall_ms = 500, .log = &log});
    start_by_hand(&bench, &hand);
    report_by_hand(&hand, 10);
    CHECK(!ops_is_stalled(look(&bench, "a")));
    CHECK(becomes_stalled(&bench, "a"));
    CHECK_NUMBER(ops_count(bench.ops, counts), 1);
    CHECK_NUMBER(counts[0].stalled, 1);
    for (int i = 0; i < 3; i++)
        ops_log_stalled(bench.ops);
    CHECK_NUMBER(count_lines(log.fd, "an operation makes no progress"), 1);
    report_by_hand(&hand, 10); /* no progress */
    CHECK(ops_is_stalled(look(&bench, "a")));
    report_by_hand(&hand, 11);
    CHECK(!ops_is_stalled(look(&bench, "a")));
    ops_log_stalled(bench.ops);
    CHECK_NUMBER(count_lines(log.fd, "an operation makes no progress"), 1);
    CHECK(becomes_stalled(&bench, "a"));
    ops_log_stalled(bench.ops);
    CHECK_NUMBER(count_lines(log.fd, "an operation makes no progress"), 2);
    atomic_store(&hand.may_end, true);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    bench_close(&bench);
    close(log.fd);
    CHECK(unlink(path) == 0);
}

static void
another_try_makes_progress_before_it_has_come_as_far(void)
{
    struct bench bench;
    struct hand hand = {0};
    bench_open(&bench, (struct ops_options){.stall_ms = 200});
    start_by_hand(&bench, &hand);
    report_by_hand(&hand, 600);
    CHECK(becomes_stalled(&bench, "a"));
    report_by_hand(&hand, 100);
    for (uint64_t done = 110; done <= 330; done += 20) {
        sleep_ms(100);
        report_by_hand(&hand, done);
        CHECK(!ops_is_stalled(look(&bench, "a")));
        CHECK_NUMBER(look(&bench, "a")->done, 600);
    }
    CHECK(look(&bench, "a")->rate > 0);
    atomic_store(&hand.may_end, true);
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    bench_close(&bench);
}

static void
start_in_background(struct bench *bench, const char *id)
{
    struct ops_spec spec = spec_for(&bench->job, id);
    spec.in_background = true;
    CHECK_OK(ops_start(bench->ops, &spec));
}

static void
those_in_the_background_leave_room_for_others(void)
{
    struct bench bench;
    bench_open(&bench, (struct ops_options){.max_running = 2});
    start_in_background(&bench, "a");
    start_in_background(&bench, "b");
    CHECK(wait_for_count(&bench.job, &bench.job.running, 1));
    CHECK_OK(start(bench.ops, &bench.job, "c"));
    CHECK(wait_for_count(&bench.job, &bench.job.running, 2));
    struct ops_counts counts[OPS_MOST_KINDS + 1];
    CHECK_NUMBER(ops_count(bench.ops, counts), 1);
    CHECK_NUMBER(counts[0].working, 2);
    CHECK_NUMBER(counts[0].queued, 1);
    operation_record *record;
    CHECK_OK(ops_get(bench.ops, "b", &bench.arena, &record));
    CHECK_NUMBER(record->phase, OPERATION_PHASE(QUEUED));
    CHECK_OK(ops_get(bench.ops, "c", &bench.arena, &record));
    CHECK_NUMBER(record->phase, OPERATION_PHASE(WORKING));
    allow_end(&bench.job);
    CHECK_NUMBER(wait_for(&bench, "b")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(wait_for(&bench, "c")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(wait_for(&bench, "a")->state, STATE(SUCCEEDED));
    CHECK_NUMBER(ops_count(bench.ops, counts), 1);
    CHECK_NUMBER(counts[0].succeeded, 3);
    bench_close(&bench);
}

static void
kinds_are_counted_apart_and_the_many_together(void)
{
    struct bench bench;
    struct ops_counts counts[OPS_MOST_KINDS + 1];
    bench_open(&bench, (struct ops_options){0});
    allow_end(&bench.job);
    for (size_t i = 0; i < OPS_MOST_KINDS + 2; i++) {
        char name[] = {'k', (char)('a' + i), 0};
        struct ops_spec spec = spec_for(&bench.job, name);
        spec.kind = name;
        CHECK_OK(ops_start(bench.ops, &spec));
        CHECK_NUMBER(wait_for(&bench, name)->state, STATE(SUCCEEDED));
    }
    CHECK_NUMBER(ops_count(bench.ops, counts), OPS_MOST_KINDS + 1);
    CHECK_TEXT(counts[1].kind, "kb");
    CHECK_NUMBER(counts[1].succeeded, 1);
    CHECK_TEXT(counts[OPS_MOST_KINDS].kind, OPS_OTHER_KIND);
    CHECK_NUMBER(counts[OPS_MOST_KINDS].succeeded, 2);
    bench_close(&bench);
}

int
main(void)
{
    done_never_falls_and_never_exceeds_the_total();
    what_was_done_is_the_total_in_the_end_if_that_was_unknown();
    the_rate_is_measured_and_tells_the_time_left();
    a_cursor_is_durable_and_gone_after_the_end();
    resumed_work_has_its_cursor();
    work_without_progress_for_a_minute_is_stalled();
    work_that_stalls_is_told_once_until_it_goes_on();
    another_try_makes_progress_before_it_has_come_as_far();
    those_in_the_background_leave_room_for_others();
    kinds_are_counted_apart_and_the_many_together();
    return check_report("test_ops_progress");
}
