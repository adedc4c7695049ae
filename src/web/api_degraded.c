/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the page: what does not answer or cannot be used. */
#include <string.h>

#include "web/api_internal.h"

#define NODE "node \"" /* so begins an entry that is no connection */

/* ---- the list of Probe ---- */

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

/* Takes the first entry off the list; NULL: there is none. */
static char *
next_entry(const char **list, struct arena *arena)
{
    size_t size = entry_size(*list);
    char *entry = size ? arena_copy(arena, *list, size) : NULL;
    *list += size + strspn(*list + size, ", ");
    return entry;
}

/* ---- in lists ---- */

void
api_print_degraded(struct api_request *request)
{
    const char *list;
    struct error *error AUTO(error_cleanup) = read_degraded(request, &list);
    json_writer_begin(&request->out, "degraded", '[');
    if (error)
        json_writer_text(&request->out, NULL, error->message);
    for (char *entry; !error && (entry = next_entry(&list, request->arena));)
        json_writer_text(&request->out, NULL, entry);
    json_writer_end(&request->out, ']');
}

/* ---- with reasons ---- */

static const char *
connection_trouble(const Skycap__V1__ListConnectionsResponse *reply, const char *name)
{
    for (size_t i = 0; reply && i < reply->n_connections; i++) {
        const Skycap__V1__ConnectionInfo *connection = reply->connections[i];
        if (strcmp(connection->name, name) == 0)
            return connection->trouble[0] ? connection->trouble : connection->file_trouble;
    }
    return "";
}

static void
print_trouble(struct json_writer *out, const char *what, const char *reason, const char *view)
{
    json_writer_begin(out, NULL, '{');
    json_writer_text(out, "what", what);
    json_writer_text(out, "reason", reason);
    json_writer_text(out, "view", view);
    json_writer_end(out, '}');
}

/* An entry is: NAME, NAME (its file is wrong), node "ID" or node "ID" (it cannot be reached). */
static void
print_entry(struct api_request *request, char *entry,
            const Skycap__V1__ListConnectionsResponse *connections)
{
    struct json_writer *out = &request->out;
    bool is_node = strncmp(entry, NODE, strlen(NODE)) == 0;
    size_t size = strcspn(entry, "(");
    char *reason = arena_string(request->arena, entry[size] ? entry + size + 1 : "");
    reason[strcspn(reason, ")")] = '\0';
    while (size && entry[size - 1] == ' ')
        size--;
    entry[size] = '\0';
    if (is_node) {
        print_trouble(out, entry, reason[0] ? reason : "it is lost", "nodes");
        return;
    }
    const char *trouble = connection_trouble(connections, entry);
    if (!trouble[0])
        trouble = reason[0] ? reason : "it is not ready";
    print_trouble(out, arena_print(request->arena, "connection \"%s\"", entry), trouble,
                  "connections");
}

/* The probe tells names only; the connections say what is wrong with them. */
static const Skycap__V1__ListConnectionsResponse *
read_connections(struct api_request *request)
{
    Skycap__V1__ListConnectionsRequest asked = SKYCAP__V1__LIST_CONNECTIONS_REQUEST__INIT;
    Skycap__V1__ListConnectionsResponse *reply = NULL;
    if (!request->api->options.has_connections)
        return NULL;
    struct error *error AUTO(error_cleanup) =
        api_read(request, "skycap.v1.Connections/List", &asked, &reply);
    return error ? NULL : reply;
}

void
api_print_attention(struct api_request *request)
{
    const char *list;
    struct error *error AUTO(error_cleanup) = read_degraded(request, &list);
    const Skycap__V1__ListConnectionsResponse *connections =
        !error && list[0] ? read_connections(request) : NULL;
    json_writer_begin(&request->out, "attention", '[');
    if (error)
        print_trouble(&request->out, "the storage of this server", error->message, "nodes");
    for (char *entry; !error && (entry = next_entry(&list, request->arena));)
        print_entry(request, entry, connections);
    json_writer_end(&request->out, ']');
}
