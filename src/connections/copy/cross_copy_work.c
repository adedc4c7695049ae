/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the content: see cross_copy_work.h. Drivers are called as an orchestrator would call them,
 * with our ids.
 */
#include "connections/copy/cross_copy_work.h"

#include <unistd.h>

#include "base/files.h"
#include "connections/copy/attach.h"
#include "connections/copy/copy_data.h"
#include "connections/forward/forward.h"
#include "connections/forward/new_volume.h"
#include "connections/request/map_field.h"
#include "connections/request/secrets.h"
#include "message/message_bytes.h"

#define LOOK_MS 50
#define KNOWN_MS 60000

/* One run of the work. */
struct run {
    struct cross_copy_work *work;
    struct call *call; /* detached */
    const char *directory;
    Csi__V1__VolumeCapability capability; /* how both are published */
    Csi__V1__VolumeCapability__AccessMode access_mode;
    Csi__V1__Volume source;       /* the volume itself, if there is no temporary copy */
    struct text_map from_secrets; /* the secrets of the request are for the target */
};

static const Csi__V1__VolumeContentSource *
content_of(const struct cross_copy_work *work)
{
    return work->record->request->volume_content_source;
}

static bool
is_snapshot(const struct cross_copy_work *work)
{
    return content_of(work)->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
}

/* ---- the temporary copy ---- */

/* After a crash the next process must be able to clean up. */
static struct error *
remember(struct cross_copy_work *work, struct run *run)
{
    struct store_change change =
        cross_copy_rows_change(work->key, work->record, STORE_ANY, call_arena(run->call));
    return store_write(work->router->store, &change, 1, NULL);
}

static struct error *
make_helper(struct run *run)
{
    struct cross_copy_work *work = run->work;
    const Csi__V1__CreateVolumeRequest *asked = work->record->request;
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeResponse reply = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
    Csi__V1__VolumeCapability *capabilities[] = {&run->capability};
    struct map_field field;
    request.name = arena_print(call_arena(run->call), "skycap-copy-%s", work->record->work_name);
    request.capacity_range = asked->capacity_range;
    request.volume_capabilities = capabilities;
    request.n_volume_capabilities = 1;
    /* Its ids are translated in place. */
    request.volume_content_source =
        message_bytes_copy(&content_of(work)->base, call_arena(run->call));
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &run->from_secrets, call_arena(run->call));
    struct error *error =
        new_volume_create(work->router, run->call, work->set, work->from, &request, &reply);
    if (error)
        return error_wrap(error, "make a temporary copy of the source");
    work->record->helper = message_bytes_copy(&reply.volume->base, &work->arena);
    return remember(work, run);
}

static const struct text_map *
secrets_for(const struct run *run, const struct connection *connection)
{
    return connection == run->work->to ? &run->work->secrets : &run->from_secrets;
}

static struct error *
delete_volume(struct run *run, struct connection *connection, const char *volume_id)
{
    struct map_field field;
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse reply = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;
    request.volume_id = (char *)volume_id;
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, secrets_for(run, connection), call_arena(run->call));
    return forward_call(run->work->router, run->work->set, connection, run->call,
                        service_find_method("/csi.v1.Controller/DeleteVolume"), &request.base,
                        &reply.base);
}

static bool
needs_helper(const struct cross_copy_work *work)
{
    return is_snapshot(work) || CONNECTION_CAN(work->from, CLONE_VOLUME);
}

/* ---- both ends ---- */

static struct attachment
end_of(const struct run *run, bool is_target)
{
    const struct cross_copy_work *work = run->work;
    return (struct attachment){
        .router = work->router,
        .set = work->set,
        .connection = is_target ? work->to : work->from,
        .call = run->call,
        .volume = is_target              ? work->record->volume
                  : work->record->helper ? work->record->helper
                                         : &run->source,
        .capability = &run->capability,
        .secrets = is_target ? &work->secrets : &run->from_secrets,
        .directory =
            arena_print(call_arena(run->call), "%s/%s", run->directory, is_target ? "to" : "from"),
        .read_only = !is_target && !work->record->helper,
        .stays = !is_target && !work->record->helper && !work->source_is_ours,
    };
}

/* A new device may hold any bytes. Files in a new tree would be mixed with those of the source. */
static struct error *
check_target(struct run *run, const char *path, const struct progress *progress)
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
claim_target(struct run *run, const char *path, const struct progress *progress)
{
    copy_record *record = run->work->record;
    if (record->begun)
        return NULL;
    struct error *error = check_target(run, path, progress);
    if (error)
        return error;
    record->begun = true;
    return remember(run->work, run);
}

/* ---- the source itself ---- */

/* Another copy may be reading it. */
static struct error *
wait_for_source(struct run *run, const struct progress *progress)
{
    struct cross_copy_work *work = run->work;
    for (;;) {
        work->source =
            copied_sources_begin(work->router->sources, work->from, run->source.volume_id);
        if (work->source)
            return NULL;
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "the copy is cancelled");
        usleep(LOOK_MS * 1000);
    }
}

static void
warn_that_it_stays(const struct run *run, const char *why)
{
    log_warn(run->work->router->log,
             "the source of a copy stays attached to this node; if nobody uses it here, detach it "
             "with ControllerUnpublishVolume",
             LOG_TEXT("volume", run->source.volume_id), LOG_TEXT("reason", why));
}

/*
 * Is it for this copy to detach the source? That must be found out before the source is attached:
 * afterwards the driver cannot tell who has attached it.
 */
static struct error *
take_source(struct run *run, bool was_begun, const struct progress *progress)
{
    struct attachment from = end_of(run, false);
    enum attach_state state;
    struct error *error = wait_for_source(run, progress);
    if (!error)
        error = attach_find_state(&from, &state);
    if (error)
        return error;
    run->work->source_is_ours = state == ATTACH_STATE_DETACHED;
    if (state == ATTACH_STATE_UNKNOWN)
        warn_that_it_stays(run, "its driver does not tell whether it was attached before");
    else if (state == ATTACH_STATE_ATTACHED && was_begun)
        warn_that_it_stays(run, "the copy was interrupted, and it may be in use since then");
    return NULL;
}

static struct error *
find_source(struct run *run, bool was_begun, const struct progress *progress)
{
    if (!needs_helper(run->work))
        return take_source(run, was_begun, progress);
    return run->work->record->helper ? NULL : make_helper(run);
}

/* The target comes first: once it is known to be ours, everything can be undone. */
static struct error *
copy_between(struct run *run, const struct progress *progress)
{
    struct attachment to = end_of(run, true);
    bool was_begun = run->work->record->begun;
    const char *from_path, *to_path;
    struct error *error = attach_volume(&to, &to_path);
    if (!error)
        error = claim_target(run, to_path, progress);
    if (!error)
        error = find_source(run, was_begun, progress);
    if (error)
        return error;
    struct attachment from = end_of(run, false);
    error = attach_volume(&from, &from_path);
    if (!error)
        error = copy_data(from_path, to_path, progress);
    if (error)
        return error;
    run->work->record->copied = true;
    return remember(run->work, run);
}

static void
keep_first(struct error **first, struct error *next)
{
    if (*first)
        error_free(next);
    else
        *first = next;
}

/* The temporary copy, or the source itself. */
static struct error *
detach_from(struct run *run)
{
    struct cross_copy_work *work = run->work;
    if (work->source && !copied_source_may_detach(work->source))
        work->source_is_ours = false;
    struct attachment from = end_of(run, false);
    struct error *error = from.volume->volume_id[0] ? attach_detach(&from) : NULL;
    if (!error)
        copied_source_end(&work->source);
    return error;
}

/* Detaches everything; returns the first error. */
static struct error *
detach_both(struct run *run)
{
    struct attachment to = end_of(run, true);
    struct error *error = attach_detach(&to);
    keep_first(&error, detach_from(run));
    if (!error && run->work->record->helper)
        error = delete_volume(run, run->work->from, run->work->record->helper->volume_id);
    if (!error)
        rmdir(run->directory);
    return error_wrap(error, "detach the copied volumes");
}

static struct error *
make_directories(struct run *run)
{
    const char *parent = arena_print(call_arena(run->call), "%s/connections/.copies",
                                     run->work->router->data_directory);
    struct error *error = files_make_path(parent);
    return error ? error : files_make_path(run->directory);
}

/* The first capability of the request, but for one node. */
static void
set_capability(struct run *run)
{
    const Csi__V1__CreateVolumeRequest *request = run->work->record->request;
    run->capability = *request->volume_capabilities[0];
    csi__v1__volume_capability__access_mode__init(&run->access_mode);
    run->access_mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    run->capability.access_mode = &run->access_mode;
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

static void
begin_run(struct cross_copy_work *work, struct run *run)
{
    *run = (struct run){.work = work, .call = call_new_detached(work->router->runtime, 0)};
    csi__v1__volume__init(&run->source);
    if (!is_snapshot(work))
        run->source.volume_id = content_of(work)->volume->volume_id;
    run->directory = arena_print(call_arena(run->call), "%s/connections/.copies/%s",
                                 work->router->data_directory, work->record->work_name);
    run->from_secrets = secrets_of(work->set, work->from, &work->secrets, call_arena(run->call));
    set_capability(run);
}

struct error *
cross_copy_work_run(struct cross_copy_work *work, const struct progress *progress)
{
    struct run run;
    begin_run(work, &run);
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
    call_free_detached(run.call);
    return error;
}

bool
cross_copy_work_undo(struct cross_copy_work *work)
{
    struct run run;
    begin_run(work, &run);
    struct error *error AUTO(error_cleanup) = detach_both(&run);
    if (!error)
        work->record->helper = NULL;
    bool is_ours = work->record->is_new || work->record->begun;
    if (!error && is_ours)
        error = delete_volume(&run, work->to, work->record->volume->volume_id);
    if (error)
        log_error(work->router->log, "the volume of a failed copy is left",
                  LOG_TEXT("volume", work->record->volume->volume_id),
                  LOG_TEXT("error", error->message));
    else if (!is_ours)
        log_warn(work->router->log,
                 "the volume of a failed copy is left: it may be somebody else's",
                 LOG_TEXT("volume", work->record->volume->volume_id));
    call_free_detached(run.call);
    return !error;
}
