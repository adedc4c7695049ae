/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller: which volumes are not well. */
#include "csi/checks.h"
#include "csi/controller_internal.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "volumes/volume.h"

/* How many volumes are looked at in one step of a list. */
#define STEP 256

static struct error *
check(struct call *call, const volume_record *volume, struct health_report *out)
{
    health_check_volume(controller_engine(call), volume, call_arena(call), out);
    return health_check_uses(controller_engine(call), volume, call_arena(call), out);
}

HANDLER(controller_get_volume_health, ControllerGetVolumeHealth)
{
    struct health_report health = {0};
    volume_record *volume;
    struct error *error = checks_id("volume_id", request->volume_id);
    const char *handle;
    if (!error)
        error = ids_find_handle(ID_VOLUME, request->volume_id, &handle);
    if (!error)
        error = volume_get(controller_engine(call), handle, call_arena(call), &volume);
    if (!error)
        error = check(call, volume, &health);
    if (!error)
        reply->volume_health = messages_health(request->volume_id, &health, call_arena(call));
    return error;
}

static void
add_entry(struct call *call, Csi__V1__ControllerListVolumeHealthResponse *reply, size_t *room,
          const volume_record *volume, const struct health_report *health)
{
    struct arena *arena = call_arena(call);
    if (reply->n_entries == *room) {
        Csi__V1__VolumeHealth **more = arena_alloc(arena, (*room * 2 + 16) * sizeof *more);
        for (size_t i = 0; i < reply->n_entries; i++)
            more[i] = reply->entries[i];
        reply->entries = more;
        *room = *room * 2 + 16;
    }
    reply->entries[reply->n_entries++] =
        messages_health(ids_print(ID_VOLUME, volume->handle, arena), health, arena);
}

/* Looks through a step of volumes; `*after` is where the next begins, NULL at the end. */
static struct error *
list_step(struct call *call, const Csi__V1__ControllerListVolumeHealthRequest *request,
          Csi__V1__ControllerListVolumeHealthResponse *reply, size_t *room, const char **after)
{
    struct arena *arena = call_arena(call);
    struct volume_page page;
    struct error *error = volume_list(controller_engine(call), *after, STEP, arena, &page);
    if (error)
        return error;
    for (size_t i = 0; i < page.count && !error; i++) {
        struct health_report health = {0};
        error = check(call, page.volumes[i], &health);
        if (!error && health.count)
            add_entry(call, reply, room, page.volumes[i], &health);
        bool is_last = i + 1 == page.count && !page.next;
        if (request->max_entries && reply->n_entries == (size_t)request->max_entries && !is_last) {
            reply->next_token = ids_print(ID_VOLUME, page.volumes[i]->handle, arena);
            break;
        }
    }
    *after = reply->next_token[0] ? NULL : page.next;
    return error;
}

HANDLER(controller_list_volume_health, ControllerListVolumeHealth)
{
    const char *after = NULL;
    size_t room = 0;
    if (request->max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    if (request->starting_token[0] && !(after = ids_handle(ID_VOLUME, request->starting_token)))
        return error_new(CODE_ABORTED, "starting_token is not one of ours: list anew");
    struct error *error;
    do
        error = list_step(call, request, reply, &room, &after);
    while (!error && after);
    return error;
}
