/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a copy: see cross_copy_source.h. */
#include "connections/copy/cross_copy_source.h"

#include <unistd.h>

#include "connections/forward/new_volume.h"
#include "connections/request/map_field.h"
#include "message/message_bytes.h"

#define LOOK_MS 50

/* ---- the temporary copy ---- */

static struct error *
make_helper(struct cross_copy_run *run)
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
        message_bytes_copy(&cross_copy_run_content(run)->base, call_arena(run->call));
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &run->from_secrets, call_arena(run->call));
    struct error *error =
        new_volume_create(work->router, run->call, work->set, work->from, &request, &reply);
    if (error)
        return error_wrap(error, "make a temporary copy of the source");
    work->record->helper = message_bytes_copy(&reply.volume->base, &work->arena);
    return cross_copy_run_remember(run);
}

/* ---- the source itself ---- */

/* Another copy may be reading it. */
static struct error *
wait_for_source(struct cross_copy_run *run, const struct progress *progress)
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
warn_that_it_stays(const struct cross_copy_run *run, const char *why)
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
take_source(struct cross_copy_run *run, bool was_begun, const struct progress *progress)
{
    struct attachment from = cross_copy_run_source(run);
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

/* ---- either ---- */

struct error *
cross_copy_source_find(struct cross_copy_run *run, bool was_begun, const struct progress *progress)
{
    const struct cross_copy_work *work = run->work;
    if (!cross_copy_run_is_of_snapshot(run) && !CONNECTION_CAN(work->from, CLONE_VOLUME))
        return take_source(run, was_begun, progress);
    return work->record->helper ? NULL : make_helper(run);
}

struct error *
cross_copy_source_attach(struct cross_copy_run *run, const char **path)
{
    struct attachment from = cross_copy_run_source(run);
    return attach_volume(&from, path);
}

struct error *
cross_copy_source_detach(struct cross_copy_run *run)
{
    struct cross_copy_work *work = run->work;
    if (work->source && !copied_source_may_detach(work->source))
        work->source_is_ours = false;
    struct attachment from = cross_copy_run_source(run);
    struct error *error = from.volume->volume_id[0] ? attach_detach(&from) : NULL;
    if (!error)
        copied_source_end(&work->source);
    return error;
}
