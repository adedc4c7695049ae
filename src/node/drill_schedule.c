/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drills by the clock: see drill.h. A thread looks once a minute which repository is due: its last
 * success is older than its file allows. After a failure it waits for an hour.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "node/drill.h"
#include "proto/repositories.pb-c.h"
#include "volumes/repository_counts.h"

#define LOOK_MS 60000u
#define ASK_AGAIN_MS 2000u
#define HOUR_NS (INT64_C(3600) * 1000000000)

/* When a repository was tried last, as far as this process knows. */
struct attempt {
    struct attempt *next;
    int64_t tried_ns;
    char name[];
};

struct drill_schedule {
    struct engine *engine;
    struct drill_turn turn; /* without functions: all drills are ours */
    bool asks_again;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    atomic_bool is_ending;
    struct attempt *attempts;
};

static bool
is_ending(const struct drill_schedule *schedule)
{
    return atomic_load(&schedule->is_ending);
}

static struct attempt *
find_attempt(struct drill_schedule *schedule, const char *name)
{
    size_t size = strlen(name) + 1;
    for (struct attempt *attempt = schedule->attempts; attempt; attempt = attempt->next)
        if (!strcmp(attempt->name, name))
            return attempt;
    struct attempt *new = memory_zeroed(sizeof *new + size);
    memcpy(new->name, name, size);
    new->next = schedule->attempts;
    schedule->attempts = new;
    return new;
}

static void
free_attempts(struct drill_schedule *schedule)
{
    while (schedule->attempts) {
        struct attempt *attempt = schedule->attempts;
        schedule->attempts = attempt->next;
        free(attempt);
    }
}

static enum drill_answer
ask_turn(const struct drill_schedule *schedule, const struct repository_place *place)
{
    const struct drill_turn *turn = &schedule->turn;
    return turn->take ? turn->take(turn->context, place->name, place->drill_hours) : DRILL_OURS;
}

/* One that has begun counts itself. */
static void
count_failure(struct engine *engine, const char *repository)
{
    struct repository_count add = {.drills = {[REPOSITORY_FAILED] = 1}};
    repository_counts_add(engine->repository_counts, repository, &add);
}

/* It is not known whether a drill is due: that is a failure, too, once an hour. */
static void
note_unknown(struct drill_schedule *schedule, const char *repository, const struct error *error)
{
    struct attempt *attempt = find_attempt(schedule, repository);
    int64_t now = clock_unix_ns();
    if (now - attempt->tried_ns < HOUR_NS)
        return;
    attempt->tried_ns = now;
    count_failure(schedule->engine, repository);
    log_error(schedule->engine->log, "it is not known whether a restore drill is due",
              LOG_TEXT("repository", repository), LOG_TEXT("error", error->message));
}

static struct error *
check_due(struct drill_schedule *schedule, const struct repository_place *place, bool *is_due)
{
    struct attempt *attempt = find_attempt(schedule, place->name);
    int64_t success_ns = 0, now = clock_unix_ns();
    if (!place->drill_hours || now - attempt->tried_ns < HOUR_NS)
        return NULL;
    struct error *error = drill_last_success(schedule->engine, place->name, &success_ns);
    if (error || now - success_ns < place->drill_hours * HOUR_NS)
        return error;
    enum drill_answer answer = ask_turn(schedule, place);
    *is_due = answer == DRILL_OURS;
    if (*is_due)
        attempt->tried_ns = now;
    if (answer == DRILL_ASK_AGAIN)
        schedule->asks_again = true;
    return NULL;
}

/* What is known of a drill when it has ended. */
struct watched {
    struct drill_schedule *schedule;
    char snapshot[REPOSITORY_NAME_BYTES]; /* its id in the repository */
};

static struct error *
take(void *context, const ProtobufCMessage *message)
{
    struct watched *watched = context;
    const Skycap__V1__DrillStep *step = (const Skycap__V1__DrillStep *)message;
    if (step->is_result)
        snprintf(watched->snapshot, sizeof watched->snapshot, "%s", step->snapshot_id);
    return NULL;
}

static bool
is_gone(void *context)
{
    return is_ending(((struct watched *)context)->schedule);
}

static struct error *
drill(struct watched *watched, const struct repository_place *place)
{
    const char *const command[] = {place->drill_command, NULL};
    const struct repository_follower follower = {take, is_gone, watched};
    struct drill_request request = {.repository = place->name,
                                    .snapshot = "",
                                    .command = place->drill_command[0] ? command : NULL,
                                    .command_timeout_ms = place->drill_timeout_ms,
                                    .in_background = true};
    struct repository_task *task;
    struct error *error = drill_start(watched->schedule->engine, &request, &task);
    if (error)
        count_failure(watched->schedule->engine, place->name);
    return error ? error : repository_task_follow(task, &follower);
}

static bool
is_interrupted(const struct drill_schedule *schedule, const struct error *error)
{
    return error && error->code == CODE_UNAVAILABLE && ops_is_stopped(schedule->engine->ops);
}

static void
run(struct drill_schedule *schedule, const struct repository_place *place)
{
    struct watched watched = {.schedule = schedule};
    uint64_t start = clock_now_ms();
    struct error *error AUTO(error_cleanup) = drill(&watched, place);
    if (is_interrupted(schedule, error))
        log_info(schedule->engine->log, "a restore drill was interrupted: it is due again",
                 LOG_TEXT("repository", place->name));
    else if (error)
        log_error(schedule->engine->log, "a restore drill has failed",
                  LOG_TEXT("repository", place->name), LOG_TEXT("error", error->message));
    else
        log_info(schedule->engine->log, "a restore drill has succeeded",
                 LOG_TEXT("repository", place->name), LOG_TEXT("snapshot", watched.snapshot),
                 LOG_NUMBER("ms", clock_now_ms() - start));
    if (!error && schedule->turn.succeed)
        schedule->turn.succeed(schedule->turn.context, place->name);
}

static void
look(struct drill_schedule *schedule)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_list names = {0};
    schedule->asks_again = false;
    struct error *unlisted AUTO(error_cleanup) =
        repository_pool_list(schedule->engine, &arena, &names);
    if (unlisted)
        log_error(schedule->engine->log, "the repositories cannot be listed: no drill is begun",
                  LOG_TEXT("error", unlisted->message));
    for (size_t i = 0; i < names.count && !is_ending(schedule); i++) {
        struct repository_place place;
        bool is_due = false;
        struct error *error AUTO(error_cleanup) =
            repository_pool_find(schedule->engine, names.items[i], &arena, &place);
        if (!error)
            error = check_due(schedule, &place, &is_due);
        if (error)
            note_unknown(schedule, names.items[i], error);
        if (is_due)
            run(schedule, &place);
    }
}

static void
rest(struct drill_schedule *schedule)
{
    struct timespec until = clock_after_ms(schedule->asks_again ? ASK_AGAIN_MS : LOOK_MS);
    pthread_mutex_lock(&schedule->lock);
    if (!is_ending(schedule))
        pthread_cond_timedwait(&schedule->ending, &schedule->lock, &until);
    pthread_mutex_unlock(&schedule->lock);
}

static void *
keep_looking(void *context)
{
    struct drill_schedule *schedule = context;
    while (!is_ending(schedule)) {
        look(schedule);
        rest(schedule);
        if (!is_ending(schedule))
            drill_sweep(schedule->engine);
    }
    return NULL;
}

struct error *
drill_schedule_open(struct engine *engine, const struct drill_turn *turn,
                    struct drill_schedule **out)
{
    struct drill_schedule *schedule = memory_zeroed(sizeof *schedule);
    pthread_condattr_t monotonic;
    schedule->engine = engine;
    if (turn)
        schedule->turn = *turn;
    pthread_mutex_init(&schedule->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&schedule->ending, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int errnum = pthread_create(&schedule->thread, NULL, keep_looking, schedule);
    if (!errnum) {
        *out = schedule;
        return NULL;
    }
    free(schedule);
    return error_from_errno(errnum, "start a thread");
}

void
drill_schedule_close(struct drill_schedule *schedule)
{
    if (!schedule)
        return;
    pthread_mutex_lock(&schedule->lock);
    atomic_store(&schedule->is_ending, true);
    pthread_cond_broadcast(&schedule->ending);
    pthread_mutex_unlock(&schedule->lock);
    pthread_join(schedule->thread, NULL);
    pthread_mutex_destroy(&schedule->lock);
    pthread_cond_destroy(&schedule->ending);
    free_attempts(schedule);
    free(schedule);
}
