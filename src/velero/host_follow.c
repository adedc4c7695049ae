/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a snapshot: see host_follow.h. */
#include "velero/host_follow.h"

#include <time.h>

#include "base/clock.h"

#define MAX_FAILURES 10
#define STEP_MS 100u

struct state {
    struct host_snapshotter *snapshotter;
    const char *snapshot;
    const struct host_follow *follow;
    bool is_cancelled; /* the plugin has accepted it */
    bool has_ended;
    unsigned failures; /* of questions, in a row */
};

static bool
wants_cancel(const struct state *state)
{
    return !state->is_cancelled && state->follow->is_cancelled &&
           state->follow->is_cancelled(state->follow->context);
}

static bool
is_late(const struct state *state)
{
    const struct host_follow *follow = state->follow;
    return (follow->end_ms && clock_now_ms() >= follow->end_ms) ||
           (follow->is_stopped && follow->is_stopped(follow->context));
}

static void
show(const struct state *state, const Generated__OperationProgress *progress)
{
    if (state->follow->look)
        state->follow->look(state->follow->context, progress);
}

/* A plugin that is gone is started by the next question, and the operation is not: it goes on. */
static struct error *
forgive_some(struct state *state, struct error *error)
{
    bool is_passing =
        error && (error->code == CODE_UNAVAILABLE || error->code == CODE_DEADLINE_EXCEEDED);
    if (!is_passing) {
        state->failures = 0;
        return error;
    }
    if (++state->failures >= MAX_FAILURES)
        return error;
    error_free(error);
    return NULL;
}

static struct error *
result_of(const struct state *state, const Generated__OperationProgress *progress)
{
    if (!progress->err[0])
        return NULL;
    return error_new(state->is_cancelled ? CODE_CANCELLED : CODE_UNKNOWN,
                     "the snapshot %s was not completed: %s", state->snapshot, progress->err);
}

static struct error *
ask(struct state *state)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Generated__OperationProgress *progress = NULL;
    struct error *error =
        host_snapshotter_progress(state->snapshotter, state->snapshot, &arena, &progress);
    if (error)
        return forgive_some(state, error);
    state->failures = 0;
    show(state, progress);
    state->has_ended = progress->completed;
    return state->has_ended ? result_of(state, progress) : NULL;
}

static struct error *
cancel(struct state *state)
{
    struct error *error = host_snapshotter_cancel(state->snapshotter, state->snapshot);
    state->is_cancelled = !error;
    return forgive_some(state, error);
}

/* Until the next question is due, or there is something to do. */
static void
rest(const struct state *state)
{
    for (uint32_t ms = 0; ms < state->follow->poll_ms && !wants_cancel(state) && !is_late(state);
         ms += STEP_MS) {
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
        show(state, NULL);
    }
}

struct error *
host_follow_snapshot(struct host_snapshotter *snapshotter, const char *snapshot,
                     const struct host_follow *follow)
{
    struct state state = {snapshotter, snapshot, follow, false, false, 0};
    for (;;) {
        struct error *error = wants_cancel(&state) ? cancel(&state) : NULL;
        if (!error)
            error = ask(&state);
        if (error || state.has_ended)
            return error;
        if (is_late(&state))
            return error_new(CODE_DEADLINE_EXCEEDED,
                             "waiting has ended, but the plugin goes on: see skycap velero host "
                             "progress %s",
                             snapshot);
        rest(&state);
    }
}
