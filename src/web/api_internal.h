/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the API share. */
#ifndef WEB_API_INTERNAL_H
#define WEB_API_INTERNAL_H

#include <stdatomic.h>

#include "message/json_value.h"
#include "proto/connections.pb-c.h"
#include "proto/csi.pb-c.h"
#include "proto/inventory.pb-c.h"
#include "proto/skycap.pb-c.h"
#include "rpc/client/channel.h"
#include "web/api.h"
#include "web/json_writer.h"

#define API_READ_MS 10000
#define API_CHANGE_MS 20000
#define API_MAX_ROWS 1000

struct api_events;

enum api_place { API_NOWHERE, API_ON_LOOPBACK, API_ELSEWHERE };

struct api {
    struct api_options options;
    struct channel *channel;
    atomic_int place;
    atomic_bool is_ready;
    int64_t started_ms;
    struct api_events *events;
};

/* One request. */
struct api_request {
    struct api *api;
    const struct http_request *http;
    struct http_answer *answer;    /* `status` is 200 unless a handler changes it */
    bool may_change;               /* the right token was given */
    const struct json_value *body; /* of a POST: an object */
    struct arena *arena;
    struct json_writer out; /* the answer's body */
};

typedef struct error *api_handler(struct api_request *request);

/* A call of this process's own services. The reply is in the arena. */
MUST_CHECK struct error *api_ask(struct api *api, struct arena *arena, uint64_t timeout_ms,
                                 const char *method, const void *message, void *reply);

/* The same for a request, with the time of reading. */
MUST_CHECK struct error *api_read(struct api_request *request, const char *method,
                                  const void *message, void *reply);

/* ---- reading ---- */

api_handler api_show_overview, api_list_nodes, api_list_connections, api_list_repositories,
    api_list_exports, api_list_latencies;                          /* api_state.c */
api_handler api_list_volumes, api_list_snapshots, api_show_volume; /* api_volumes.c */
api_handler api_show_snapshot;
api_handler api_list_operations; /* api_operations.c */

/* ---- changing: api_change.c ---- */

api_handler api_create_volume, api_delete_volume, api_create_snapshot, api_delete_snapshot,
    api_move_volume, api_cancel_operation;

/* ---- operations ---- */

const char *api_operation_state(const Skycap__V1__Operation *operation);
/* What an operation works for. A name that is not known is "". */
struct api_subject {
    const char *name;
    const char *source_name; /* of what it was made from */
};

void api_print_operation(struct json_writer *out, const Skycap__V1__Operation *operation,
                         const struct api_subject *subject);
/* All that the server knows, up to ten thousand; what is told is in the request's arena. */
MUST_CHECK struct error *api_each_operation(struct api_request *request,
                                            void (*take)(void *context,
                                                         const Skycap__V1__Operation *operation),
                                            void *context);
/* The names of a volume or a snapshot, in the arena; "": unknown, or not told in a second. */
struct api_subject api_find_subject(struct api *api, struct arena *arena, const char *id);

/* ---- state ---- */

/* Writes the member "degraded": what does not answer or cannot be used. */
void api_print_degraded(struct api_request *request);

/* Writes the member "attention": the same with the reason of each, and the view that shows it. */
void api_print_attention(struct api_request *request);

/* The parameters `limit` and `after` of a list in pages. */
MUST_CHECK struct error *api_read_page(const struct api_request *request, int32_t *limit,
                                       char **after);

/* ---- events: api_events.c ---- */

struct api_events *api_events_new(struct api *api);
/* Ends all streams, now and from now on, and the thread. */
void api_events_stop(struct api_events *events);
void api_events_free(struct api_events *events);
/* Answers with a stream of events. */
void api_events_serve(struct api_events *events, struct http_answer *answer);

#endif
