/* SPDX-License-Identifier: Apache-2.0 */
/* Doing the copy: see cross_copy_work.h. All calls to drivers are made as an orchestrator would make them, with our ids. */
#include "connections/cross_copy_work.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connections/attach.h"
#include "connections/copy_data.h"
#include "connections/map_field.h"
#include "connections/pass.h"
#include "rpc/message_bytes.h"

#define CAN(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name

/* One run of the work. */
struct run {
    struct cross_copy_work *work;
    struct call *call; /* detached */
    const char *directory;
    Csi__V1__VolumeCapability capability; /* how both are published */
    Csi__V1__VolumeCapability__AccessMode access_mode;
    Csi__V1__Volume source; /* what is copied from */
    bool has_helper;        /* that is a helping copy */
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

static bool
driver_can(const struct connection *connection, int capability)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    uint64_t can = facts->controller & ~connection->spec->without_controller;
    return can >> capability & 1;
}

/* ---- the helping copy ---- */

/* The ids in it are changed on the way to the driver. */
static Csi__V1__VolumeContentSource *
duplicate_content(const Csi__V1__VolumeContentSource *content, struct arena *arena)
{
    size_t size;
    uint8_t *bytes = message_bytes_pack(&content->base, arena, &size);
    return (Csi__V1__VolumeContentSource *)message_bytes_unpack(content->base.descriptor, bytes,
                                                                size, arena);
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
    request.volume_content_source = duplicate_content(content_of(work), call_arena(run->call));
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &work->secrets, call_arena(run->call));
    struct error *error =
        desk_create_on(work->desk, run->call, work->set, work->from, &request, &reply);
    if (error)
        return error_wrap(error, "make a helping copy of the source");
    run->source = *reply.volume;
    run->has_helper = true;
    return NULL;
}

static struct error *
delete_volume(struct run *run, struct connection *connection, const char *volume_id)
{
    struct map_field field;
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse reply = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;
    request.volume_id = (char *)volume_id;
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, &run->work->secrets, call_arena(run->call));
    return pass_call(run->work->desk, run->work->set, connection, run->call,
                     service_find_method("/csi.v1.Controller/DeleteVolume"), &request.base,
                     &reply.base);
}

static struct error *
find_source(struct run *run)
{
    struct cross_copy_work *work = run->work;
    if (is_snapshot(work) || driver_can(work->from, CAN(CLONE_VOLUME)))
        return make_helper(run);
    csi__v1__volume__init(&run->source);
    run->source.volume_id = content_of(work)->volume->volume_id;
    return NULL;
}

/* ---- both ends ---- */

static struct attachment
end_of(const struct run *run, bool is_target)
{
    const struct cross_copy_work *work = run->work;
    return (struct attachment){
        .desk = work->desk,
        .set = work->set,
        .connection = is_target ? work->to : work->from,
        .call = run->call,
        .volume = is_target ? work->record->volume : &run->source,
        .capability = &run->capability,
        .secrets = &work->secrets,
        .directory =
            arena_print(call_arena(run->call), "%s/%s", run->directory, is_target ? "to" : "from"),
        .read_only = !is_target && !run->has_helper,
    };
}

static struct error *
copy_between(struct run *run, const struct progress *progress)
{
    struct attachment from = end_of(run, false), to = end_of(run, true);
    const char *from_path, *to_path;
    struct error *error = attach_volume(&from, &from_path);
    if (!error)
        error = attach_volume(&to, &to_path);
    if (!error)
        error = copy_data(from_path, to_path, progress);
    return error;
}

static void
keep_first(struct error **first, struct error *next)
{
    if (*first)
        error_free(next);
    else
        *first = next;
}

/* Lets go of everything; the first thing that goes wrong is the error. */
static struct error *
let_go(struct run *run)
{
    struct attachment from = end_of(run, false), to = end_of(run, true);
    struct error *error = attach_undo(&to);
    keep_first(&error, attach_undo(&from));
    if (!error && run->has_helper)
        error = delete_volume(run, run->work->from, run->source.volume_id);
    if (!error)
        rmdir(run->directory);
    return error_wrap(error, "let go of the copied volumes");
}

static struct error *
make_directories(struct run *run)
{
    const char *parent = arena_print(call_arena(run->call), "%s/connections/copies",
                                     run->work->desk->options.data_directory);
    run->directory =
        arena_print(call_arena(run->call), "%s/%s", parent, run->work->record->work_name);
    if ((mkdir(parent, 0700) != 0 && errno != EEXIST) ||
        (mkdir(run->directory, 0700) != 0 && errno != EEXIST))
        return error_from_errno(errno, "make the directory %s", run->directory);
    return NULL;
}

/* As the first capability of the request, for one node. */
static void
set_capability(struct run *run)
{
    const Csi__V1__CreateVolumeRequest *request = run->work->record->request;
    run->capability = *request->volume_capabilities[0];
    csi__v1__volume_capability__access_mode__init(&run->access_mode);
    run->access_mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    run->capability.access_mode = &run->access_mode;
}

struct error *
cross_copy_work_run(struct cross_copy_work *work, const struct progress *progress)
{
    struct run run = {.work = work, .call = call_new_detached(work->desk->options.runtime, 0)};
    set_capability(&run);
    struct error *error = make_directories(&run);
    if (!error)
        error = find_source(&run);
    if (!error) {
        error = copy_between(&run, progress);
        keep_first(&error, let_go(&run));
    }
    call_free_detached(run.call);
    return error;
}

void
cross_copy_work_undo(struct cross_copy_work *work)
{
    struct run run = {.work = work, .call = call_new_detached(work->desk->options.runtime, 0)};
    struct error *error AUTO(error_cleanup) =
        delete_volume(&run, work->to, work->record->volume->volume_id);
    if (error)
        log_error(work->desk->options.log, "the volume of a failed copy is left",
                  LOG_TEXT("volume", work->record->volume->volume_id),
                  LOG_TEXT("error", error->message));
    call_free_detached(run.call);
}
