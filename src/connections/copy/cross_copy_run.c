/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the work of a copy: see cross_copy_run.h. */
#include "connections/copy/cross_copy_run.h"

#include "connections/forward/forward.h"
#include "connections/request/map_field.h"
#include "connections/request/secrets.h"

/* The first capability of the request, but for one node. */
static void
set_capability(struct cross_copy_run *run)
{
    const Csi__V1__CreateVolumeRequest *request = run->work->record->request;
    run->capability = *request->volume_capabilities[0];
    csi__v1__volume_capability__access_mode__init(&run->access_mode);
    run->access_mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    run->capability.access_mode = &run->access_mode;
    source_capability_init(&run->source_capability, &run->capability);
}

void
cross_copy_run_begin(struct cross_copy_work *work, struct cross_copy_run *run)
{
    *run =
        (struct cross_copy_run){.work = work, .call = call_new_detached(work->router->runtime, 0)};
    csi__v1__volume__init(&run->source);
    if (!cross_copy_run_is_of_snapshot(run))
        run->source.volume_id = cross_copy_run_content(run)->volume->volume_id;
    run->directory = arena_print(call_arena(run->call), "%s/connections/.copies/%s",
                                 work->router->data_directory, work->record->work_name);
    run->from_secrets = secrets_of(work->set, work->from, &work->secrets, call_arena(run->call));
    set_capability(run);
}

void
cross_copy_run_end(struct cross_copy_run *run)
{
    call_free_detached(run->call);
}

const Csi__V1__VolumeContentSource *
cross_copy_run_content(const struct cross_copy_run *run)
{
    return run->work->record->request->volume_content_source;
}

bool
cross_copy_run_is_of_snapshot(const struct cross_copy_run *run)
{
    return cross_copy_run_content(run)->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
}

struct error *
cross_copy_run_remember(struct cross_copy_run *run)
{
    struct cross_copy_work *work = run->work;
    struct store_change change =
        cross_copy_rows_change(work->key, work->record, STORE_ANY, call_arena(run->call));
    return store_write(work->router->store, &change, 1, NULL);
}

/* ---- both ends ---- */

struct attachment
cross_copy_run_target(const struct cross_copy_run *run)
{
    const struct cross_copy_work *work = run->work;
    return (struct attachment){
        .router = work->router,
        .set = work->set,
        .connection = work->to,
        .call = run->call,
        .volume = work->record->volume,
        .capability = &run->capability,
        .secrets = &work->secrets,
        .directory = arena_print(call_arena(run->call), "%s/to", run->directory),
    };
}

struct attachment
cross_copy_run_source(const struct cross_copy_run *run)
{
    const struct cross_copy_work *work = run->work;
    const Csi__V1__Volume *helper = work->record->helper;
    return (struct attachment){
        .router = work->router,
        .set = work->set,
        .connection = work->from,
        .call = run->call,
        .volume = helper ? helper : &run->source,
        .capability = &run->source_capability.capability,
        .secrets = &run->from_secrets,
        .directory = arena_print(call_arena(run->call), "%s/from", run->directory),
        .read_only = !helper,
        .stays = !helper && !work->source_is_ours,
    };
}

struct error *
cross_copy_run_delete(struct cross_copy_run *run, struct connection *connection,
                      const char *volume_id)
{
    struct cross_copy_work *work = run->work;
    struct map_field field;
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse reply = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;
    request.volume_id = (char *)volume_id;
    map_field_find(&request.base, "secrets", &field);
    map_field_write(&field, connection == work->to ? &work->secrets : &run->from_secrets,
                    call_arena(run->call));
    return forward_call(work->router, work->set, connection, run->call,
                        service_find_method("/csi.v1.Controller/DeleteVolume"), &request.base,
                        &reply.base);
}
