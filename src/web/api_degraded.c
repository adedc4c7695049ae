/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the page: what does not answer or cannot be used. */
#include <string.h>

#include "web/api_internal.h"

static const char *
find_trailer(const struct client_call *call, const char *key)
{
    const struct metadata *trailers = client_call_trailers(call);
    for (const struct metadata_entry *entry = trailers->first; entry; entry = entry->next)
        if (strcmp(entry->key, key) == 0)
            return entry->value;
    return "";
}

/*
 * What Probe says of connections and nodes that do not answer: "a, b (its file is wrong)". Its
 * error tells that the storage itself cannot be used.
 */
static struct error *
read_degraded(struct api_request *request, const char **out)
{
    Csi__V1__ProbeRequest asked = CSI__V1__PROBE_REQUEST__INIT;
    struct call_options options = {.timeout_ns = API_READ_MS * UINT64_C(1000000)};
    struct client_call *call;
    ProtobufCMessage *message;
    *out = "";
    struct error *error = client_call_open(
        request->api->channel, service_find_method("csi.v1.Identity/Probe"), &options, &call);
    if (error)
        return error;
    error_free(client_call_send(call, &asked.base)); /* receiving says why */
    client_call_close_send(call);
    error = client_call_recv(call, request->arena, &message);
    if (!error)
        error = client_call_finish(call);
    if (!error)
        *out = arena_string(request->arena, find_trailer(call, "skycap-degraded"));
    client_call_free(call);
    return error_forgive(error, CODE_UNIMPLEMENTED);
}

/* The size of the first entry of the list; commas in parentheses do not separate. */
static size_t
entry_size(const char *list)
{
    int depth = 0;
    size_t size = 0;
    for (; list[size] && (depth > 0 || list[size] != ','); size++)
        depth += list[size] == '(' ? 1 : list[size] == ')' ? -1 : 0;
    return size;
}

void
api_print_degraded(struct api_request *request)
{
    const char *list;
    struct error *error AUTO(error_cleanup) = read_degraded(request, &list);
    json_writer_begin(&request->out, "degraded", '[');
    if (error)
        json_writer_text(&request->out, NULL, error->message);
    while (!error && list[0]) {
        size_t size = entry_size(list);
        json_writer_text(&request->out, NULL, arena_copy(request->arena, list, size));
        list += size + strspn(list + size, ", ");
    }
    json_writer_end(&request->out, ']');
}
