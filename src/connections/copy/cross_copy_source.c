/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a copy: see cross_copy_source.h. */
#include "connections/copy/cross_copy_source.h"

#include <string.h>
#include <unistd.h>

#include "connections/forward/forward.h"
#include "connections/forward/new_volume.h"
#include "connections/request/map_field.h"
#include "message/message_bytes.h"

#define LOOK_MS 50

/* ---- its file system ---- */

static bool
is_of_engine(const struct cross_copy_run *run)
{
    return run->work->from->spec->driver->speaks_our_ids;
}

static bool
is_mounted(const struct cross_copy_run *run)
{
    return run->capability.access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
}

/* Our engine makes a temporary copy only if it is asked for the source's own file system. */
static void
use_file_system(struct cross_copy_run *run)
{
    char *type = run->work->record->source_type;
    if (is_of_engine(run) && is_mounted(run) && strcmp(type, "directory") != 0 &&
        strcmp(type, "block") != 0)
        run->source_capability.mount.fs_type = type;
}

/*
 * Other drivers do not tell the file system of a volume. They are asked without one; if one refuses
 * that, its volumes may have the file system of the target.
 */
static bool
try_other_file_system(struct cross_copy_run *run)
{
    Csi__V1__VolumeCapability__MountVolume *mount = &run->source_capability.mount;
    if (!is_mounted(run) || is_of_engine(run) || mount->fs_type[0] ||
        !run->capability.mount->fs_type[0])
        return false;
    mount->fs_type = run->capability.mount->fs_type;
    return true;
}

/* ALREADY_EXISTS: an earlier run has got it with the other file system. */
static bool
is_refusal(const struct error *error)
{
    return error->code == CODE_INVALID_ARGUMENT || error->code == CODE_ALREADY_EXISTS;
}

/* ---- its size ---- */

/* As the driver tells of a snapshot; 0: it does not. */
static struct error *
find_snapshot_size(struct cross_copy_run *run, int64_t *out)
{
    const struct cross_copy_work *work = run->work;
    Csi__V1__ListSnapshotsRequest request = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Csi__V1__ListSnapshotsResponse reply = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    struct map_field field;
    *out = 0;
    if (!CONNECTION_CAN(work->from, LIST_SNAPSHOTS))
        return NULL;
    request.snapshot_id = cross_copy_run_content(run)->snapshot->snapshot_id;
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &run->from_secrets, call_arena(run->call));
    struct error *error = forward_call(work->router, work->set, work->from, run->call,
                                       service_find_method("/csi.v1.Controller/ListSnapshots"),
                                       &request.base, &reply.base);
    if (!error && reply.n_entries && reply.entries[0]->snapshot)
        *out = reply.entries[0]->snapshot->size_bytes;
    return error_forgive(error, CODE_INVALID_ARGUMENT);
}

/* Our engine makes a copy as large as its source by itself. */
static struct error *
find_size(struct cross_copy_run *run, int64_t *out)
{
    struct attachment from = cross_copy_run_source(run);
    struct attach_facts facts = {0};
    *out = 0;
    if (is_of_engine(run))
        return NULL;
    if (cross_copy_run_is_of_snapshot(run))
        return find_snapshot_size(run, out);
    struct error *error = attach_find_facts(&from, &facts);
    *out = facts.size_bytes;
    return error;
}

/* ---- the temporary copy ---- */

/* Size and parameters of the request are for the target. */
static struct error *
create_helper(struct cross_copy_run *run, int64_t size_bytes, Csi__V1__CreateVolumeResponse *reply)
{
    struct cross_copy_work *work = run->work;
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
    Csi__V1__VolumeCapability *capabilities[] = {&run->source_capability.capability};
    struct map_field field;
    request.name = arena_print(call_arena(run->call), "skycap-copy-%s", work->record->work_name);
    range.required_bytes = size_bytes;
    request.capacity_range = size_bytes ? &range : NULL;
    request.volume_capabilities = capabilities;
    request.n_volume_capabilities = 1;
    /* Its ids are translated in place. */
    request.volume_content_source =
        message_bytes_copy(&cross_copy_run_content(run)->base, call_arena(run->call));
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &run->from_secrets, call_arena(run->call));
    return new_volume_create(work->router, run->call, work->set, work->from, &request, reply);
}

static struct error *
make_helper(struct cross_copy_run *run)
{
    struct cross_copy_work *work = run->work;
    Csi__V1__CreateVolumeResponse reply = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
    int64_t size_bytes;
    struct error *error = find_size(run, &size_bytes);
    if (!error)
        error = create_helper(run, size_bytes, &reply);
    if (error && is_refusal(error) && try_other_file_system(run)) {
        error_free(error);
        error = create_helper(run, size_bytes, &reply);
    }
    if (error)
        return error_wrap(error,
                          "make a temporary copy of the source (it has the size of the source and "
                          "the parameters in the file of connection \"%s\", not those of the "
                          "request)",
                          work->from->spec->name);
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
    struct attach_facts facts;
    struct error *error = wait_for_source(run, progress);
    if (!error)
        error = attach_find_facts(&from, &facts);
    if (error)
        return error;
    run->work->source_is_ours =
        facts.state == ATTACH_STATE_DETACHED || facts.state == ATTACH_STATE_ELSEWHERE;
    if (facts.state == ATTACH_STATE_UNKNOWN)
        warn_that_it_stays(run, "its driver does not tell whether it was attached before");
    else if (facts.state == ATTACH_STATE_ATTACHED && was_begun)
        warn_that_it_stays(run, "the copy was interrupted, and it may be in use since then");
    return NULL;
}

/* Takes the source only if the driver says that nobody uses it: then it does not change. */
static struct error *
take_unused(struct cross_copy_run *run, const struct progress *progress, bool *is_taken)
{
    struct attachment from = cross_copy_run_source(run);
    struct attach_facts facts = {0};
    struct error *error = wait_for_source(run, progress);
    if (!error)
        error = attach_find_facts(&from, &facts);
    *is_taken = !error && facts.state == ATTACH_STATE_DETACHED;
    run->work->source_is_ours = *is_taken;
    if (!*is_taken)
        copied_source_end(&run->work->source);
    return error;
}

/* Can the source be published like this? If not, staging a raw device might format it. */
static bool
is_confirmed(struct cross_copy_run *run)
{
    const struct cross_copy_work *work = run->work;
    Csi__V1__ValidateVolumeCapabilitiesRequest request =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
    Csi__V1__ValidateVolumeCapabilitiesResponse reply =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__INIT;
    Csi__V1__VolumeCapability *capabilities[] = {&run->source_capability.capability};
    struct map_field field;
    request.volume_id = run->source.volume_id;
    request.volume_capabilities = capabilities;
    request.n_volume_capabilities = 1;
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &run->from_secrets, call_arena(run->call));
    struct error *error AUTO(error_cleanup) =
        forward_call(work->router, work->set, work->from, run->call,
                     service_find_method("/csi.v1.Controller/ValidateVolumeCapabilities"),
                     &request.base, &reply.base);
    return !error && reply.confirmed;
}

/* Takes and returns the error of the temporary copy; NULL: the volume itself can be read. */
static struct error *
do_without_helper(struct cross_copy_run *run, const struct progress *progress, struct error *error)
{
    bool is_taken = false;
    bool may_do = error->code == CODE_INVALID_ARGUMENT || error->code == CODE_OUT_OF_RANGE ||
                  error->code == CODE_RESOURCE_EXHAUSTED;
    if (!may_do || cross_copy_run_is_of_snapshot(run) || is_of_engine(run) || !is_confirmed(run))
        return error;
    struct error *failure AUTO(error_cleanup) = take_unused(run, progress, &is_taken);
    if (failure || !is_taken)
        return error;
    log_info(run->work->router->log, "a copy reads its source itself, because nobody uses it",
             LOG_TEXT("volume", run->source.volume_id), LOG_TEXT("reason", error->message));
    error_free(error);
    return NULL;
}

/* ---- either ---- */

struct error *
cross_copy_source_find(struct cross_copy_run *run, bool was_begun, const struct progress *progress)
{
    const struct cross_copy_work *work = run->work;
    use_file_system(run);
    if (!cross_copy_run_is_of_snapshot(run) && !CONNECTION_CAN(work->from, CLONE_VOLUME))
        return take_source(run, was_begun, progress);
    struct error *error = work->record->helper ? NULL : make_helper(run);
    return error ? do_without_helper(run, progress, error) : NULL;
}

/* Before another attempt; the controller's part stays. Takes and returns the first one's error. */
static struct error *
undo_attachment(struct attachment from, struct error *error)
{
    from.stays = true;
    struct error *failure AUTO(error_cleanup) = attach_detach(&from);
    return failure ? error_wrap(error, "%s", failure->message) : error;
}

struct error *
cross_copy_source_attach(struct cross_copy_run *run, const char **path)
{
    struct attachment from = cross_copy_run_source(run);
    struct error *error = attach_volume(&from, path);
    bool may_be_refusal = error && (is_refusal(error) || error->code == CODE_FAILED_PRECONDITION ||
                                    error->code == CODE_INTERNAL || error->code == CODE_UNKNOWN);
    if (!may_be_refusal || !try_other_file_system(run))
        return error;
    error = undo_attachment(from, error);
    struct error *other AUTO(error_cleanup) = attach_volume(&from, path);
    if (other)
        return error;
    error_free(error);
    return NULL;
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
