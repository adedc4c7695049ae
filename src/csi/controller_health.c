/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Controller: the health of volumes. */
#include "csi/controller_internal.h"
#include "csi/ids.h"
#include "csi/messages.h"
#include "volumes/volume.h"

/* How many volumes are read at a time. */
#define STEP 256

HANDLER(controller_get_volume_health, ControllerGetVolumeHealth)
{
    struct health_report health = {0};
    volume_record *volume;
    struct error *error = controller_find_shown(call, request->volume_id, &volume);
    if (!error)
        error = controller_check_health(controller_engine(call), volume, call_arena(call), &health);
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

/* Lists from STEP volumes; `*after` is where the next step begins, NULL at the end. */
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
        error = controller_check_health(controller_engine(call), page.volumes[i], arena, &health);
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
    const char *after;
    size_t room = 0, looked_at = 0;
    struct error *error =
        ids_read_page(ID_VOLUME, request->starting_token, request->max_entries, &after);
    if (error)
        return error;
    do {
        error = list_step(call, request, reply, &room, &after);
        looked_at += STEP;
    } while (!error && after && looked_at < CONTROLLER_MOST_ENTRIES);
    if (!error && after) /* the page may be empty: most volumes are healthy */
        reply->next_token = ids_print(ID_VOLUME, after, call_arena(call));
    return error;
}
