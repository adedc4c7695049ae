/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the page: operations. */
#include <string.h>

#include "base/clock.h"
#include "web/api_internal.h"

#define MAX_PAGES 10 /* of a thousand */
#define NAME_MS 1000
#define NAMES_MS 3000 /* for those of one answer */

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name

const char *
api_operation_state(const Skycap__V1__Operation *operation)
{
    switch (operation->state) {
    case STATE(RUNNING):
        return "running";
    case STATE(SUCCEEDED):
        return "succeeded";
    case STATE(FAILED):
        return "failed";
    case STATE(CANCELLED):
        return "cancelled";
    default:
        return "";
    }
}

void
api_print_operation(struct json_writer *out, const Skycap__V1__Operation *operation,
                    const struct api_subject *subject)
{
    json_writer_begin(out, NULL, '{');
    json_writer_text(out, "id", operation->id);
    json_writer_text(out, "kind", operation->kind);
    json_writer_text(out, "subject", operation->subject);
    json_writer_text(out, "subjectName", subject->name);
    json_writer_text(out, "sourceName", subject->source_name);
    json_writer_text(out, "node", operation->node_id);
    json_writer_text(out, "state", api_operation_state(operation));
    json_writer_number(out, "done", operation->done);
    json_writer_number(out, "total", operation->total);
    json_writer_text(out, "units", operation->units);
    json_writer_text(out, "description", operation->description);
    json_writer_time(out, "startedMs", operation->started);
    json_writer_time(out, "updatedMs", operation->updated);
    if (operation->rate > 0)
        json_writer_number(out, "ratePerSecond", operation->rate);
    else
        json_writer_null(out, "ratePerSecond");
    if (operation->time_left)
        json_writer_number(out, "secondsLeft", operation->time_left->seconds);
    else
        json_writer_null(out, "secondsLeft");
    json_writer_bool(out, "stalled", operation->stalled);
    json_writer_text(out, "error", operation->error_message);
    json_writer_end(out, '}');
}

struct api_subject
api_find_subject(struct api *api, struct arena *arena, const char *id)
{
    Skycap__V1__GetVolumeRequest volume = SKYCAP__V1__GET_VOLUME_REQUEST__INIT;
    Skycap__V1__GetSnapshotRequest snapshot = SKYCAP__V1__GET_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__GetVolumeResponse *of_volume = NULL;
    Skycap__V1__GetSnapshotResponse *of_snapshot = NULL;
    struct error *error AUTO(error_cleanup) = NULL;
    volume.volume = snapshot.snapshot = (char *)id;
    if (strncmp(id, "v:", 2) == 0)
        error = api_ask(api, arena, NAME_MS, "skycap.v1.Inventory/GetVolume", &volume, &of_volume);
    else if (strncmp(id, "s:", 2) == 0)
        error = api_ask(api, arena, NAME_MS, "skycap.v1.Inventory/GetSnapshot", &snapshot,
                        &of_snapshot);
    if (!error && of_volume && of_volume->volume)
        return (struct api_subject){of_volume->volume->name, of_volume->volume->source_name};
    if (!error && of_snapshot && of_snapshot->snapshot)
        return (struct api_subject){of_snapshot->snapshot->name,
                                    of_snapshot->snapshot->source_name};
    return (struct api_subject){"", ""};
}

struct error *
api_each_operation(struct api_request *request,
                   void (*take)(void *context, const Skycap__V1__Operation *operation),
                   void *context)
{
    Skycap__V1__ListOperationsRequest asked = SKYCAP__V1__LIST_OPERATIONS_REQUEST__INIT;
    Skycap__V1__ListOperationsResponse *reply;
    for (int page = 0; page < MAX_PAGES; page++) {
        struct error *error = api_read(request, "skycap.v1.Operations/List", &asked, &reply);
        if (error)
            return error;
        for (size_t i = 0; i < reply->n_operations; i++)
            take(context, reply->operations[i]);
        asked.starting_token = reply->next_token;
        if (!reply->next_token[0])
            break;
    }
    return NULL;
}

struct printing {
    struct api_request *request;
    uint64_t deadline_ms; /* of names: nodes that hang must not hold the answer */
};

/* Names are looked up only for what goes on: there may be thousands that have ended. */
static void
print_one(void *context, const Skycap__V1__Operation *operation)
{
    const struct printing *printing = context;
    struct api_request *request = printing->request;
    struct api_subject subject = {"", ""};
    if (operation->state == STATE(RUNNING) && clock_now_ms() < printing->deadline_ms)
        subject = api_find_subject(request->api, request->arena, operation->subject);
    api_print_operation(&request->out, operation, &subject);
}

struct error *
api_list_operations(struct api_request *request)
{
    struct printing printing = {request, clock_now_ms() + NAMES_MS};
    json_writer_begin(&request->out, "operations", '[');
    struct error *error = api_each_operation(request, print_one, &printing);
    json_writer_end(&request->out, ']');
    return error;
}
