/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.ClusterStore: rows of the cluster in the registry's store, below a prefix of their own.
 *
 * The first write also writes the mark, the row whose key is the prefix alone. It is never removed,
 * so that a cluster where nothing was ever written differs from one whose rows are all gone.
 */
#include <string.h>

#include "registry/registry_internal.h"
#include "registry/rights.h"
#include "store/registry_store.h"

#define PREFIX REGISTRY_STORE_PREFIX
#define MARK_VALUE "1"

#define MAX_ROWS 1000             /* of a page */
#define MAX_PAGE_BYTES (1u << 20) /* the rows that exceed it are the last */
#define READ_ROWS 32              /* at a time: 2 MiB at most */

typedef Skycap__V1__Row row_message;

static struct error *
check_caller(struct call *call)
{
    const struct registry *registry = call_context(call);
    return registry->options.is_open ? NULL : rights_check_rows(call_peer(call));
}

static char *
key_of(const char *key, struct arena *arena)
{
    return arena_print(arena, PREFIX "%s", key);
}

static void
fill_row(row_message *out, const struct store_entry *entry)
{
    skycap__v1__row__init(out);
    out->key = (char *)entry->key + strlen(PREFIX);
    out->value = (ProtobufCBinaryData){entry->value_size, (uint8_t *)entry->value};
    out->revision = entry->revision;
}

/* ---- reading ---- */

static struct error *
get_row(struct call *call, const Skycap__V1__GetRowRequest *request, row_message *reply)
{
    const struct registry *registry = call_context(call);
    struct arena *arena = call_arena(call);
    struct store_entry entry;
    bool found = false;
    struct error *error = check_caller(call);
    if (!error)
        error = registry_store_check_key(request->key);
    if (!error)
        error =
            store_find(registry->options.store, key_of(request->key, arena), arena, &entry, &found);
    if (error)
        return error;
    if (!found)
        return error_new(CODE_NOT_FOUND, "the cluster has no row \"%s\"", request->key);
    fill_row(reply, &entry);
    return NULL;
}

/* A page that is being filled. */
struct page {
    struct store *store;
    const char *prefix;
    const char *after;
    size_t limit;
    size_t bytes;
    Skycap__V1__ListRowsReply *reply;
};

static struct error *
add_rows(struct page *page, struct arena *arena)
{
    Skycap__V1__ListRowsReply *reply = page->reply;
    size_t room = page->limit - reply->n_rows;
    struct store_list list;
    struct error *error = store_list(page->store, page->prefix, page->after,
                                     room < READ_ROWS ? room : READ_ROWS, arena, &list);
    if (error)
        return error;
    for (size_t i = 0; i < list.count; i++) {
        row_message *row = arena_alloc(arena, sizeof *row);
        fill_row(row, &list.entries[i]);
        page->after = list.entries[i].key;
        page->bytes += strlen(page->after) + list.entries[i].value_size;
        reply->rows[reply->n_rows++] = row;
    }
    reply->has_more = list.has_more;
    return NULL;
}

static struct error *
check_bounds(const Skycap__V1__ListRowsRequest *request)
{
    if (strlen(request->prefix) <= REGISTRY_STORE_MAX_KEY &&
        strlen(request->after) <= REGISTRY_STORE_MAX_KEY)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "prefix and after have at most %d bytes",
                     REGISTRY_STORE_MAX_KEY);
}

/* The mark is the first of all keys: a list always begins after it. */
static struct error *
list_rows(struct call *call, const Skycap__V1__ListRowsRequest *request,
          Skycap__V1__ListRowsReply *reply)
{
    const struct registry *registry = call_context(call);
    struct arena *arena = call_arena(call);
    struct error *error = check_caller(call);
    if (!error)
        error = check_bounds(request);
    if (error)
        return error;
    struct page page = {
        .store = registry->options.store,
        .prefix = key_of(request->prefix, arena),
        .after = key_of(request->after, arena),
        .limit = request->limit && request->limit < MAX_ROWS ? request->limit : MAX_ROWS,
        .reply = reply,
    };
    reply->rows = arena_alloc(arena, page.limit * sizeof(void *));
    do
        error = add_rows(&page, arena);
    while (!error && reply->has_more && reply->n_rows < page.limit && page.bytes < MAX_PAGE_BYTES);
    return error;
}

/* Whether rows were ever written. */
static struct error *
find_mark(struct registry *registry, struct arena *arena, bool *found)
{
    struct store_entry entry;
    *found = atomic_load(&registry->has_rows);
    if (*found)
        return NULL;
    struct error *error = store_find(registry->options.store, PREFIX, arena, &entry, found);
    if (!error && *found)
        atomic_store(&registry->has_rows, true);
    return error;
}

static struct error *
get_revision(struct call *call, const Skycap__V1__GetRevisionRequest *request,
             Skycap__V1__GetRevisionReply *reply)
{
    struct registry *registry = call_context(call);
    bool found = false;
    (void)request;
    struct error *error = check_caller(call);
    if (!error)
        error = find_mark(registry, call_arena(call), &found);
    return error || !found ? error : store_revision(registry->options.store, &reply->revision);
}

/* ---- writing ---- */

/* UINT64_MAX would mean any revision. */
static struct error *
read_expectation(const Skycap__V1__RowChange *change, uint64_t *out)
{
    bool has_revision = change->expectation == SKYCAP__V1__ROW_CHANGE__EXPECTATION__REVISION;
    bool is_known = has_revision ||
                    change->expectation == SKYCAP__V1__ROW_CHANGE__EXPECTATION__ANY ||
                    change->expectation == SKYCAP__V1__ROW_CHANGE__EXPECTATION__ABSENT;
    bool is_good =
        is_known && has_revision == (change->revision != 0) && change->revision <= INT64_MAX;
    *out = has_revision                                                         ? change->revision
           : change->expectation == SKYCAP__V1__ROW_CHANGE__EXPECTATION__ABSENT ? STORE_ABSENT
                                                                                : STORE_ANY;
    return is_good ? NULL
                   : error_new(CODE_INVALID_ARGUMENT,
                               "the change of \"%.64s\" has no valid expectation", change->key);
}

static struct error *
read_change(const Skycap__V1__RowChange *change, struct store_change *out)
{
    static const uint8_t nothing[1];
    *out = (struct store_change){.key = change->key};
    if (change->is_removal && change->value.len)
        return error_new(CODE_INVALID_ARGUMENT, "the removal of \"%.64s\" has a value",
                         change->key);
    if (!change->is_removal) {
        out->value = change->value.len ? change->value.data : nothing;
        out->value_size = change->value.len;
    }
    return read_expectation(change, &out->expected);
}

/* `out` has room for REGISTRY_STORE_MAX_CHANGES. */
static struct error *
read_changes(const Skycap__V1__WriteRowsRequest *request, struct store_change *out)
{
    struct error *error = NULL;
    for (size_t i = 0; !error && i < request->n_changes && i < REGISTRY_STORE_MAX_CHANGES; i++)
        error = read_change(request->changes[i], &out[i]);
    return error ? error : registry_store_check_changes(out, request->n_changes);
}

/* Only the nodes can know whether there was more before. */
static void
tell_empty(const struct registry *registry)
{
    log_info(registry->options.log,
             "the store had no rows of a cluster: the cluster is new, or the registry has lost its "
             "data. Then the nodes announce their volumes again, and skycap node list shows those "
             "that are missing");
}

static struct error *
write_rows(struct call *call, const Skycap__V1__WriteRowsRequest *request,
           Skycap__V1__WriteRowsReply *reply)
{
    struct registry *registry = call_context(call);
    struct store_change changes[REGISTRY_STORE_MAX_CHANGES + 1];
    size_t count = request->n_changes;
    bool has_mark = false;
    struct error *error = check_caller(call);
    if (!error)
        error = read_changes(request, changes);
    if (!error)
        error = find_mark(registry, call_arena(call), &has_mark);
    if (error)
        return error;
    for (size_t i = 0; i < count; i++)
        changes[i].key = key_of(changes[i].key, call_arena(call));
    if (!has_mark)
        changes[count++] = (struct store_change){PREFIX, (const uint8_t *)MARK_VALUE,
                                                 strlen(MARK_VALUE), STORE_ANY};
    error = store_write(registry->options.store, changes, count, &reply->revision);
    if (!error && !atomic_exchange(&registry->has_rows, true) && !has_mark)
        tell_empty(registry);
    return error;
}

const struct skycap_v1_cluster_store registry_rows_handlers = {
    .get = {get_row},
    .list = {list_rows},
    .write = {write_rows},
    .get_revision = {get_revision},
};
