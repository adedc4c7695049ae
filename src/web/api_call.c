/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the page: calls of this process's own services. */
#include "web/api_internal.h"

struct error *
api_ask(struct api *api, struct arena *arena, uint64_t timeout_ms, const char *method,
        const void *message, void *reply)
{
    struct call_options options = {.timeout_ns = timeout_ms * 1000000, .wait_for_ready = true};
    return channel_call(api->channel, service_find_method(method), message, &options, arena, reply);
}

struct error *
api_read(struct api_request *request, const char *method, const void *message, void *reply)
{
    return api_ask(request->api, request->arena, API_READ_MS, method, message, reply);
}
