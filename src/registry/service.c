/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Registry, except for Watch. */
#include <string.h>

#include "base/clock.h"
#include "message/message_map.h"
#include "registry/client/path.h"
#include "registry/registry_internal.h"

#define MAX_ENTRIES 1000
#define MAX_PAGE_BYTES (1u << 20) /* a page has at least one entry */
#define MAX_ATTRIBUTES 64
#define ATTRIBUTES_BYTES 4096 /* of all keys and values */
#define MAX_ATTRIBUTE_KEY 128
#define LONGEST_TIME_TO_LIVE_S (INT64_C(10) * 365 * 24 * 3600)

/* ---- Announce ---- */

/* `*expires_ms` 0: never. */
static struct error *
read_time_to_live(const Google__Protobuf__Duration *duration, int64_t *expires_ms)
{
    *expires_ms = 0;
    if (!duration || (!duration->seconds && !duration->nanos))
        return NULL;
    bool is_good = duration->seconds >= 1 && duration->seconds <= LONGEST_TIME_TO_LIVE_S &&
                   duration->nanos >= 0 && duration->nanos < 1000000000;
    if (!is_good)
        return error_new(CODE_INVALID_ARGUMENT,
                         "time_to_live must be at least one second and at most ten years");
    *expires_ms = clock_unix_ms() + duration->seconds * 1000 + duration->nanos / 1000000;
    return NULL;
}

static bool
is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static struct error *
check_attribute(const struct text_pair *pair)
{
    size_t size = strlen(pair->key);
    if (size < 1 || size > MAX_ATTRIBUTE_KEY || !is_printable(pair->key))
        return error_new(CODE_INVALID_ARGUMENT,
                         "the key of an attribute has 1 to %d bytes of printable ASCII",
                         MAX_ATTRIBUTE_KEY);
    return NULL;
}

static struct error *
read_attributes(const Skycap__V1__AnnounceRequest *request, struct arena *arena,
                struct text_map *out)
{
    size_t count = request->n_attributes;
    if (count > MAX_ATTRIBUTES || message_map_size(request->attributes, count) > ATTRIBUTES_BYTES)
        return error_new(CODE_INVALID_ARGUMENT,
                         "there may be at most %d attributes, of %d bytes in total", MAX_ATTRIBUTES,
                         ATTRIBUTES_BYTES);
    struct error *error = NULL;
    *out = message_map_read(request->attributes, count, arena);
    for (size_t i = 0; !error && i < out->count; i++)
        error = check_attribute(&out->pairs[i]);
    return error;
}

/* Of the controller, or of the node. */
static struct error *
read_path(const Skycap__V1__AnnounceRequest *request, struct arena *arena, const char **out)
{
    const char *controller = request->controller_id, *node = request->node_id;
    if (!controller[0] == !node[0])
        return error_new(CODE_INVALID_ARGUMENT,
                         "exactly one of controller_id and node_id must be set");
    *out = node[0] ? path_of_node(node, arena) : path_of_address(controller, arena);
    return node[0] ? path_check_node_id(node) : path_check_id(controller);
}

static struct error *
announce(struct call *call, const Skycap__V1__AnnounceRequest *request,
         Skycap__V1__AnnounceReply *reply)
{
    struct entry entry = {.value = request->address};
    struct error *error = read_time_to_live(request->time_to_live, &entry.expires_ms);
    if (!error)
        error = read_path(request, call_arena(call), &entry.path);
    if (!error)
        error = read_attributes(request, call_arena(call), &entry.attributes);
    if (!error)
        error = requests_set(call, &entry);
    if (!error && request->address[0])
        reply->expires = requests_make_time(entry.expires_ms, call_arena(call));
    return error;
}

/* ---- ListEntries ---- */

static struct error *
list_page(struct call *call, const Skycap__V1__ListEntriesRequest *request, struct entry_page *page)
{
    const struct registry *registry = call_context(call);
    struct arena *arena = call_arena(call);
    const char *prefix, *after = NULL;
    size_t limit = request->max_entries;
    if (!limit || limit > MAX_ENTRIES)
        limit = MAX_ENTRIES;
    struct error *error = path_normalize(request->path, arena, &prefix);
    if (!error)
        error = requests_check_reader(call, prefix);
    if (error)
        return error;
    if (request->starting_token[0]) {
        error = path_normalize(request->starting_token, arena, &after);
        if (error || strcmp(after, request->starting_token) != 0 || !path_is_below(after, prefix)) {
            error_free(error);
            return error_new(CODE_INVALID_ARGUMENT,
                             "starting_token is not from a page of this path");
        }
    }
    return entries_list(registry->options.store, prefix, after, limit, arena, page);
}

static struct error *
list_entries(struct call *call, const Skycap__V1__ListEntriesRequest *request,
             Skycap__V1__ListEntriesReply *reply)
{
    const struct registry *registry = call_context(call);
    struct arena *arena = call_arena(call);
    struct entry_page page;
    struct error *error = list_page(call, request, &page);
    if (error)
        return error;
    int64_t now_ms = clock_unix_ms();
    size_t bytes = 0;
    reply->entries = arena_alloc(arena, page.count * sizeof(void *));
    while (reply->n_entries < page.count && bytes < MAX_PAGE_BYTES) {
        const struct entry *entry = &page.entries[reply->n_entries];
        Skycap__V1__RegistryEntry *message = arena_alloc(arena, sizeof *message);
        requests_fill_entry(message, entry,
                            controllers_is_expired(registry->controllers, entry, now_ms), arena);
        bytes += protobuf_c_message_get_packed_size(&message->base);
        reply->entries[reply->n_entries++] = message;
    }
    if (page.has_more || reply->n_entries < page.count)
        reply->next_token = reply->entries[reply->n_entries - 1]->path;
    return NULL;
}

const struct skycap_v1_registry registry_handlers = {
    .announce = {announce},
    .list_entries = {list_entries},
    .watch = {registry_watch},
};
