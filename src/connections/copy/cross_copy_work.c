/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the content: see cross_copy_work.h. Drivers are called as an orchestrator would call them,
 * with our ids.
 */
#include "connections/copy/cross_copy_work.h"

#include <unistd.h>

#include "base/files.h"
#include "connections/copy/copy_data.h"
#include "connections/copy/cross_copy_run.h"
#include "connections/copy/cross_copy_source.h"

#define LOOK_MS 50
#define KNOWN_MS 60000

/* A new device may hold any bytes. Files in a new tree would be mixed with those of the source. */
static struct error *
check_target(struct cross_copy_run *run, const char *path, const struct progress *progress)
{
    const copy_record *record = run->work->record;
    bool is_device =
        run->capability.access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
    bool is_empty;
    if (record->is_new && is_device)
        return NULL;
    struct error *error = copy_data_check_empty(path, progress, &is_empty);
    if (error || is_empty)
        return error;
    if (record->is_new)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the driver of connection \"%s\" has made a new volume with files in it "
                         "(\"%s\"); a copy would be mixed with them",
                         run->work->to->spec->name, record->volume->volume_id);
    return error_new(
        CODE_ALREADY_EXISTS,
        "there is a volume \"%s\" with content of its own, with the id \"%s\", and the "
        "driver of connection \"%s\" does not tell by LIST_VOLUMES whether it is new. "
        "It is left as it is: use another name, or delete it if nobody needs it. If "
        "the driver does not zero its new volumes, no copy can be made there",
        record->request->name, record->volume->volume_id, run->work->to->spec->name);
}

/*
 * A driver returns the same volume for the same name, also one that somebody else has created and
 * uses. Only a new or empty volume is ours.
 */
static struct error *
claim_target(struct cross_copy_run *run, const char *path, const struct progress *progress)
{
    copy_record *record = run->work->record;
    if (record->begun)
        return NULL;
    struct error *error = check_target(run, path, progress);
    if (error)
        return error;
    record->begun = true;
    return cross_copy_run_remember(run);
}

/* The target comes first: once it is known to be ours, everything can be undone. */
static struct error *
copy_between(struct cross_copy_run *run, const struct progress *progress)
{
    struct attachment to = cross_copy_run_target(run);
    bool was_begun = run->work->record->begun;
    const char *from_path, *to_path;
    struct error *error = attach_volume(&to, &to_path);
    if (!error)
        error = claim_target(run, to_path, progress);
    if (!error)
        error = cross_copy_source_find(run, was_begun, progress);
    if (!error)
        error = cross_copy_source_attach(run, &from_path);
    if (!error)
        error = copy_data(from_path, to_path, progress);
    if (error)
        return error;
    run->work->record->copied = true;
    return cross_copy_run_remember(run);
}

static void
keep_first(struct error **first, struct error *next)
{
    if (*first)
        error_free(next);
    else
        *first = next;
}

/* Detaches everything; returns the first error. */
static struct error *
detach_both(struct cross_copy_run *run)
{
    struct attachment to = cross_copy_run_target(run);
    struct error *error = attach_detach(&to);
    keep_first(&error, cross_copy_source_detach(run));
    if (!error && run->work->record->helper)
        error = cross_copy_run_delete(run, run->work->from, run->work->record->helper->volume_id);
    if (!error)
        rmdir(run->directory);
    return error_wrap(error, "detach the copied volumes");
}

static struct error *
make_directories(struct cross_copy_run *run)
{
    const char *parent = arena_print(call_arena(run->call), "%s/connections/.copies",
                                     run->work->router->data_directory);
    struct error *error = files_make_path(parent);
    return error ? error : files_make_path(run->directory);
}

/* After a start the capabilities of drivers are not known yet. */
static struct error *
wait_until_known(const struct connection *connection, const struct progress *progress)
{
    for (unsigned waited_ms = 0;; waited_ms += LOOK_MS) {
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
        if (facts->is_known)
            return NULL;
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "the copy is cancelled");
        if (waited_ms >= KNOWN_MS)
            return error_new(CODE_UNAVAILABLE, "connection \"%s\": %s", connection->spec->name,
                             facts->trouble);
        usleep(LOOK_MS * 1000);
    }
}

struct error *
cross_copy_work_run(struct cross_copy_work *work, const struct progress *progress)
{
    struct cross_copy_run run;
    cross_copy_run_begin(work, &run);
    struct error *error = wait_until_known(work->from, progress);
    if (!error)
        error = wait_until_known(work->to, progress);
    if (!error)
        error = make_directories(&run);
    /* An earlier process may have copied everything. */
    if (!error && !work->record->copied)
        error = copy_between(&run, progress);
    if (!error)
        error = detach_both(&run);
    cross_copy_run_end(&run);
    return error;
}

bool
cross_copy_work_undo(struct cross_copy_work *work)
{
    struct cross_copy_run run;
    cross_copy_run_begin(work, &run);
    struct error *error AUTO(error_cleanup) = detach_both(&run);
    if (!error)
        work->record->helper = NULL;
    bool is_ours = work->record->is_new || work->record->begun;
    if (!error && is_ours)
        error = cross_copy_run_delete(&run, work->to, work->record->volume->volume_id);
    if (error)
        log_error(work->router->log, "the volume of a failed copy is left",
                  LOG_TEXT("volume", work->record->volume->volume_id),
                  LOG_TEXT("error", error->message));
    else if (!is_ours)
        log_warn(work->router->log,
                 "the volume of a failed copy is left: it may be somebody else's",
                 LOG_TEXT("volume", work->record->volume->volume_id));
    cross_copy_run_end(&run);
    return !error;
}
