/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a snapshot: see velero_host_wait.h. */
#include "cli/velero_host_wait.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/progress.h"
#include "cli/velero_report.h"
#include "velero/host_follow.h"

#define POLL_MS 500u
#define MAX_UNITS_BYTES 32
#define MAX_DESCRIPTION_BYTES 120

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name

struct wait {
    struct velero_host *host;
    const char *snapshot;
    const char *what;
    bool is_named;
    bool is_watch; /* the snapshot is not ours to cancel */
    bool has_begun;
    struct progress_bar bar;
    struct velero_report *report;
    struct error *failure; /* to report */
};

/* ---- texts ---- */

/* What a plugin says, for a terminal. */
static char *
clean(const char *text, size_t most, struct arena *arena)
{
    char *copy = arena_copy(arena, text, strnlen(text, most));
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return copy;
}

Skycap__V1__Operation *
velero_host_operation(const char *snapshot, const Generated__OperationProgress *progress,
                      struct arena *arena)
{
    Skycap__V1__Operation *operation = arena_alloc(arena, sizeof *operation);
    bool is_bytes = strcasecmp(progress->operationunits, "bytes") == 0;
    skycap__v1__operation__init(operation);
    operation->id = (char *)snapshot;
    operation->state = !progress->completed ? STATE(RUNNING)
                       : progress->err[0]   ? STATE(FAILED)
                                            : STATE(SUCCEEDED);
    operation->done = progress->ncompleted > 0 ? progress->ncompleted : 0;
    operation->total = progress->ntotal > 0 ? progress->ntotal : 0;
    operation->units =
        is_bytes ? (char *)"bytes" : clean(progress->operationunits, MAX_UNITS_BYTES, arena);
    operation->description = clean(progress->description, MAX_DESCRIPTION_BYTES, arena);
    operation->started = progress->started;
    operation->updated = progress->updated;
    return operation;
}

/* ---- following ---- */

/* With the first progress that is not the end: before it there was nothing to wait for. */
static void
begin(struct wait *wait, Skycap__V1__Operation *operation)
{
    wait->has_begun = true;
    if (wait->is_watch)
        return;
    fprintf(stderr, "skycap: waiting for the snapshot %s\n", wait->snapshot);
    operation->description = (char *)wait->what;
    wait->failure =
        velero_report_open(wait->host->client, wait->is_named, operation, &wait->report);
    if (wait->failure)
        fprintf(stderr, "skycap: %s\n", wait->failure->message);
}

static void
look(void *context, const Generated__OperationProgress *progress)
{
    struct wait *wait = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (!progress)
        return;
    Skycap__V1__Operation *operation = velero_host_operation(wait->snapshot, progress, &arena);
    velero_report_progress(wait->report, operation->done, operation->total);
    if (!progress->completed)
        progress_draw(&wait->bar, operation);
    if (!progress->completed && !wait->has_begun)
        begin(wait, operation);
}

static bool
is_cancelled(void *context)
{
    const struct wait *wait = context;
    return !wait->is_watch &&
           (velero_host_is_interrupted() || velero_report_is_cancelled(wait->report));
}

static bool
is_stopped(void *context)
{
    const struct wait *wait = context;
    return wait->is_watch && velero_host_is_interrupted();
}

static uint64_t
end_of(const struct client *client)
{
    return client->flags.timeout_s ? client->started_ns / 1000000 + client->flags.timeout_s * 1000
                                   : 0;
}

static struct error *
follow(struct wait *wait)
{
    struct host_follow how = {.end_ms = end_of(wait->host->client),
                              .poll_ms = POLL_MS,
                              .look = look,
                              .is_cancelled = is_cancelled,
                              .is_stopped = is_stopped,
                              .context = wait};
    struct error *error = host_follow_snapshot(wait->host->snapshotter, wait->snapshot, &how);
    bool was_cancelled = is_cancelled(wait);
    progress_wipe(&wait->bar);
    velero_report_close(wait->report, error);
    error_free(wait->failure);
    if (!error && was_cancelled)
        fprintf(stderr,
                "skycap: the snapshot %s could not be cancelled: %s; delete it with skycap velero "
                "host delete\n",
                wait->snapshot,
                host_snapshotter_is_adapted(wait->host->snapshotter)
                    ? "it was complete when the plugin, of version 1, answered"
                    : "it was complete before");
    return error;
}

struct error *
velero_host_wait(struct velero_host *host, const char *snapshot, const char *what, bool is_named)
{
    struct wait wait = {.host = host,
                        .snapshot = snapshot,
                        .what = what,
                        .is_named = is_named,
                        .bar.draws = isatty(STDERR_FILENO)};
    return follow(&wait);
}

struct error *
velero_host_watch(struct velero_host *host, const char *snapshot)
{
    struct wait wait = {
        .host = host, .snapshot = snapshot, .is_watch = true, .bar.draws = isatty(STDERR_FILENO)};
    return follow(&wait);
}
