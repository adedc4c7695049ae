/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for operations: see progress.h. */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size_text.h"
#include "cli/inventory.h"

#define BAR_COLUMNS 30
#define SOON_MS 500 /* what takes longer has a bar */
#define LATE_MS 600000
#define AGAIN_MS 100
#define MOST_TRIES 600

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name
#define PHASE(name) SKYCAP__V1__OPERATION__PHASE__##name

/* ---- texts ---- */

/* -1: unknown. A copy that is larger than expected stays at 99. */
static int
percent_of(const Skycap__V1__Operation *operation)
{
    if (operation->state == STATE(SUCCEEDED))
        return 100;
    if (operation->total <= 0 || operation->done < 0)
        return -1;
    int percent = (int)((double)operation->done * 100 / (double)operation->total);
    return percent > 99 ? 99 : percent;
}

const char *
progress_percent(const Skycap__V1__Operation *operation, struct arena *arena)
{
    int percent = percent_of(operation);
    return percent < 0 ? "" : arena_print(arena, "%d%%", percent);
}

static const char *
amount(int64_t number, const char *units, struct arena *arena)
{
    char *text = arena_alloc(arena, 32);
    if (strcmp(units, "bytes") != 0)
        return arena_print(arena, "%" PRId64 " %s", number, units);
    size_text_print(number, text, 32);
    return text;
}

const char *
progress_amount(const Skycap__V1__Operation *operation, struct arena *arena)
{
    const char *done = amount(operation->done, operation->units, arena);
    if (operation->total <= 0)
        return operation->done ? done : "";
    return arena_print(arena, "%s of %s", done, amount(operation->total, operation->units, arena));
}

struct error *
progress_result(const Skycap__V1__Operation *operation)
{
    const char *message = operation->error_message;
    if (operation->state == STATE(CANCELLED))
        return error_new(CODE_CANCELLED, "%s", message[0] ? message : "it was cancelled");
    if (operation->state == STATE(FAILED))
        return error_new(operation->error_code > 0 && operation->error_code < CODE_COUNT
                             ? (enum code)operation->error_code
                             : CODE_UNKNOWN,
                         "%s", message[0] ? message : "it failed");
    return NULL;
}

/* ---- the bar ---- */

struct follower {
    struct progress_bar bar;
    struct error *result; /* of the operation */
    bool has_ended;
};

static const char *
time_text(int64_t seconds, struct arena *arena)
{
    if (seconds < 60)
        return arena_print(arena, "%" PRId64 " s", seconds);
    if (seconds < 3600)
        return arena_print(arena, "%" PRId64 " min %" PRId64 " s", seconds / 60, seconds % 60);
    return arena_print(arena, "%" PRId64 " h %" PRId64 " min", seconds / 3600, seconds % 3600 / 60);
}

const char *
progress_rate(const Skycap__V1__Operation *operation, struct arena *arena)
{
    if (operation->rate <= 0)
        return "";
    return arena_print(arena, "%s/s", amount(operation->rate, operation->units, arena));
}

const char *
progress_time_left(const Skycap__V1__Operation *operation, struct arena *arena)
{
    return operation->time_left ? time_text(operation->time_left->seconds, arena) : "";
}

const char *
progress_state(const Skycap__V1__Operation *operation)
{
    switch (operation->state) {
    case STATE(RUNNING):
        break;
    case STATE(SUCCEEDED):
        return "succeeded";
    case STATE(FAILED):
        return "failed";
    case STATE(CANCELLED):
        return "cancelled";
    default:
        return "";
    }
    if (operation->cancel_asked)
        return "ending";
    if (operation->phase == PHASE(QUEUED))
        return "queued";
    if (operation->phase == PHASE(WAITING))
        return "waiting";
    return operation->stalled ? "stalled" : "running";
}

/* "  85.2 MiB/s, 12 s left", or why there is none. */
static const char *
speed_text(const Skycap__V1__Operation *operation, struct arena *arena)
{
    if (operation->rate > 0)
        return arena_print(arena, "  %s, %s left", progress_rate(operation, arena),
                           progress_time_left(operation, arena));
    const char *state = progress_state(operation);
    return strcmp(state, "running") == 0 ? "" : arena_print(arena, "  %s", state);
}

void
progress_draw(struct progress_bar *progress, const Skycap__V1__Operation *operation)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (!progress->draws)
        return;
    char bar[BAR_COLUMNS + 1];
    int percent = percent_of(operation);
    int full = percent < 0 ? 0 : percent * BAR_COLUMNS / 100;
    memset(bar, '.', BAR_COLUMNS);
    memset(bar, '#', (size_t)full);
    bar[BAR_COLUMNS] = '\0';
    fprintf(stderr, "\r\033[K[%s] %4s  %s%s", bar, progress_percent(operation, &arena),
            progress_amount(operation, &arena), speed_text(operation, &arena));
    fflush(stderr);
    progress->has_drawn = true;
}

void
progress_wipe(const struct progress_bar *bar)
{
    if (bar->has_drawn)
        fputs("\r\033[K", stderr);
}

static struct error *
take(void *context, const void *message)
{
    struct follower *follower = context;
    const Skycap__V1__Operation *operation = message;
    follower->has_ended = operation->state != STATE(RUNNING);
    if (follower->has_ended) {
        error_free(follower->result);
        follower->result = progress_result(operation);
    } else {
        progress_draw(&follower->bar, operation);
    }
    return NULL;
}

/* The command stops waiting; the server does not stop copying. */
static struct error *
time_limit_error(struct error *error, const char *operation)
{
    error_free(error);
    return error_new(CODE_DEADLINE_EXCEEDED,
                     "the time limit has passed, but the work goes on: see skycap op watch %s",
                     operation);
}

struct error *
progress_follow(struct client *client, const char *id)
{
    Skycap__V1__WatchOperationsRequest request = SKYCAP__V1__WATCH_OPERATIONS_REQUEST__INIT;
    struct follower follower = {.bar.draws = isatty(STDERR_FILENO)};
    request.id = (char *)id;
    struct error *error =
        client_ask_stream(client, "skycap.v1.Operations/Watch", &request, take, &follower);
    progress_wipe(&follower.bar);
    if (!error && !follower.has_ended)
        error = error_new(CODE_UNAVAILABLE,
                          "the server ended the stream before the operation %s ended", id);
    if (!error)
        return follower.result;
    error_free(follower.result);
    return error->code == CODE_DEADLINE_EXCEEDED ? time_limit_error(error, id) : error;
}

/* ---- asking for what may take long ---- */

static bool
is_under_way(const struct error *error)
{
    return error && (error->code == CODE_ABORTED || error->code == CODE_DEADLINE_EXCEEDED);
}

struct error *
progress_find_volume(struct client *client, const char *name, const char **id)
{
    volume_info *volume;
    struct error *error = inventory_find_volume(client, name, &volume);
    *id = !error && !volume->ready ? volume->volume->volume_id : NULL;
    return error;
}

struct error *
progress_find_snapshot(struct client *client, const char *name, const char **id)
{
    snapshot_info *snapshot;
    struct error *error = inventory_find_snapshot(client, name, &snapshot);
    *id = !error && !snapshot->snapshot->ready_to_use ? snapshot->snapshot->snapshot_id : NULL;
    return error;
}

/*
 * Waits until the copy ends, or for a moment if none is found: what a third-party driver creates
 * has no name here, several things may have the same name, and a connection may be down. If the
 * server does not answer, the next request says so.
 */
static struct error *
wait_for_copy(struct client *client, progress_finder *find, const char *name)
{
    const char *id;
    struct error *error = find(client, name, &id);
    if (id)
        return progress_follow(client, id);
    error_free(error);
    nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
    return NULL;
}

/*
 * A server that is still copying, or busy with another request for this volume, answers ABORTED.
 * The same request again waits for the same copy; if that was cancelled meanwhile, it starts
 * another. So one request waits until the copy has ended, and its answer says how. Only on a
 * terminal does it wait briefly at first: the bar needs the operation, which is searched for after
 * each request. A driver that has none is asked less and less often.
 */
struct error *
progress_ask(struct client *client, const char *method, const void *request, progress_finder *find,
             const char *name, void *reply)
{
    uint64_t wait_ms = isatty(STDERR_FILENO) ? SOON_MS : LATE_MS;
    struct error *error = client_ask_within(client, wait_ms, method, request, reply);
    for (int i = 0; i < MOST_TRIES && is_under_way(error) && client_has_time(client); i++) {
        struct error *failure = wait_for_copy(client, find, name);
        error_free(error);
        if (failure)
            return failure;
        wait_ms = wait_ms < LATE_MS ? 2 * wait_ms : LATE_MS;
        error = client_ask_within(client, wait_ms, method, request, reply);
    }
    if (is_under_way(error) && !client_has_time(client))
        return time_limit_error(error, name);
    return error;
}
