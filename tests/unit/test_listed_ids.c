/* SPDX-License-Identifier: Apache-2.0 */
/* Which volumes a driver has: lists in pages, lists that cannot be had, lists that are too long. */
#include "connections/copy/listed_ids.h"

#include "check.h"
#include "connection_sets.h"

static struct runtime *runtime;
static struct router router;
static struct connection *connection;

/* What the driver answers with. */
static size_t volume_count, page_size;
static enum code answer_code;
static bool never_ends;
static size_t pages_read;

static struct error *
list_volumes(struct driver *driver, struct call *call, const struct method *method,
             const ProtobufCMessage *in, ProtobufCMessage *out)
{
    (void)driver;
    struct arena *arena = call_arena(call);
    const Csi__V1__ListVolumesRequest *request = (const Csi__V1__ListVolumesRequest *)in;
    Csi__V1__ListVolumesResponse *reply = (Csi__V1__ListVolumesResponse *)out;
    CHECK_TEXT(method->name, "ListVolumes");
    size_t first = strtoul(request->starting_token, NULL, 10);
    pages_read++;
    size_t end = first + page_size < volume_count ? first + page_size : volume_count;
    if (answer_code && end == volume_count) /* on the last page */
        return error_new(answer_code, "no list");
    reply->entries = arena_alloc(arena, (end - first + 1) * sizeof(void *));
    for (size_t i = first; i < end; i++) {
        Csi__V1__ListVolumesResponse__Entry *entry = arena_alloc(arena, sizeof *entry);
        csi__v1__list_volumes_response__entry__init(entry);
        entry->volume = arena_alloc(arena, sizeof *entry->volume);
        csi__v1__volume__init(entry->volume);
        entry->volume->volume_id = arena_print(arena, "volumes/%zu", i);
        reply->entries[reply->n_entries++] = entry;
    }
    if (end < volume_count || never_ends)
        reply->next_token = arena_print(arena, "%zu", end);
    return NULL;
}

static struct driver_ops listing_driver = {
    .name = "csi", .close = silent_close, .call = list_volumes};

static void
set_lists(bool can)
{
    struct driver_facts *facts = driver_facts_new();
    facts->is_known = facts->is_ready = true;
    facts->controller =
        can ? UINT64_C(1) << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES : 0;
    driver_set_facts(connection->driver, facts);
}

/* Reads the list of so many; the code of the error. */
static enum code
read_list(struct call *call, size_t count, size_t in_page, enum code code, struct listed_ids *ids)
{
    volume_count = count;
    page_size = in_page;
    answer_code = code;
    struct error *error AUTO(error_cleanup) = listed_ids_read(&router, call, connection, ids);
    return error ? error->code : CODE_OK;
}

static bool
has(struct call *call, const struct listed_ids *ids, const char *id)
{
    bool found;
    CHECK(!listed_ids_find(&router, call, ids, id, &found));
    return found;
}

static void
test_pages(struct call *call)
{
    struct listed_ids ids;
    for (size_t in_page = 1; in_page < 2000; in_page *= 10) {
        CHECK_NUMBER(read_list(call, 1000, in_page, CODE_OK, &ids), CODE_OK);
        CHECK(ids.is_known);
        CHECK_NUMBER(ids.count, 1000);
        CHECK(has(call, &ids, "v:a/volumes/0"));
        CHECK(has(call, &ids, "v:a/volumes/999"));
        CHECK(has(call, &ids, "v:old-name/volumes/999"));
        CHECK(!has(call, &ids, "v:a/volumes/1000"));
    }
    CHECK_NUMBER(read_list(call, 0, 1, CODE_OK, &ids), CODE_OK);
    CHECK(ids.is_known);
    CHECK(!has(call, &ids, "v:a/volumes/0"));
}

static void
test_no_list(struct call *call)
{
    struct listed_ids ids;
    static const enum code passing[] = {CODE_UNAVAILABLE, CODE_DEADLINE_EXCEEDED, CODE_ABORTED};
    static const enum code lasting[] = {CODE_INTERNAL, CODE_UNIMPLEMENTED, CODE_RESOURCE_EXHAUSTED};
    for (size_t i = 0; i < COUNT_OF(passing); i++) {
        CHECK_NUMBER(read_list(call, 10, 4, passing[i], &ids), passing[i]);
        CHECK(!ids.is_known);
    }
    for (size_t i = 0; i < COUNT_OF(lasting); i++) {
        CHECK_NUMBER(read_list(call, 10, 4, lasting[i], &ids), CODE_OK);
        CHECK(!ids.is_known);
    }
    set_lists(false);
    CHECK_NUMBER(read_list(call, 10, 4, CODE_OK, &ids), CODE_OK);
    CHECK(!ids.is_known);
    set_lists(true);
}

static void
test_too_long(struct call *call)
{
    struct listed_ids ids;
    CHECK_NUMBER(read_list(call, LISTED_IDS_MAX, 10000, CODE_OK, &ids), CODE_OK);
    CHECK(ids.is_known);
    CHECK_NUMBER(read_list(call, LISTED_IDS_MAX + 1, 10000, CODE_OK, &ids), CODE_OK);
    CHECK(!ids.is_known);
    never_ends = true;
    pages_read = 0;
    CHECK_NUMBER(read_list(call, 1, 1, CODE_OK, &ids), CODE_OK);
    CHECK(!ids.is_known);
    CHECK(pages_read < 10); /* its token is the same again and again */
    never_ends = false;
}

int
main(void)
{
    struct log log = {.fd = 2, .level = LOG_ERROR};
    CHECK(!runtime_open(&(struct runtime_options){.log = &log}, &runtime));
    router.runtime = runtime;
    router.log = &log;
    struct connection_set *set = connection_set_new(1);
    connection = add_connection(set, silent_driver_new(runtime, "1", NULL, NULL), "a",
                                "driver: csi\noptions: {endpoint: 'unix:///x'}\n");
    connection->spec->driver = &listing_driver;
    set_lists(true);
    struct call *call = call_new_detached(runtime, 0);
    test_pages(call);
    test_no_list(call);
    test_too_long(call);
    call_free_detached(call);
    connection_set_release(set);
    runtime_close(runtime);
    return check_report("listed ids");
}
