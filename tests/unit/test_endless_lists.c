/* SPDX-License-Identifier: Apache-2.0 */
/* A driver whose ListVolumes never ends: whoever looks for a volume in it gets an error, soon. */
#include "connections/forward/list_end.h"

#include "check.h"
#include "connection_sets.h"
#include "connections/copy/attach.h"
#include "connections/router/driver_inventory.h"
#include "rpc/server/call_internal.h"

static struct runtime *runtime;
static struct router router;
static struct connection_set *set;
static struct connection *connection;

/* The driver's pages have one volume each, and these tokens: first..., then the circle for ever. */
static size_t before_circle, circle, pages_read;

static struct error *
list_volumes(struct driver *driver, struct call *call, const struct method *method,
             const ProtobufCMessage *in, ProtobufCMessage *out)
{
    (void)driver;
    struct arena *arena = call_arena(call);
    Csi__V1__ListVolumesResponse *reply = (Csi__V1__ListVolumesResponse *)out;
    CHECK_TEXT(method->name, "ListVolumes");
    size_t page = strtoul(((const Csi__V1__ListVolumesRequest *)in)->starting_token, NULL, 10);
    size_t next = page + 1 < before_circle + circle ? page + 1 : before_circle;
    Csi__V1__ListVolumesResponse__Entry *entry = arena_alloc(arena, sizeof *entry);
    csi__v1__list_volumes_response__entry__init(entry);
    entry->volume = arena_alloc(arena, sizeof *entry->volume);
    csi__v1__volume__init(entry->volume);
    entry->volume->volume_id = arena_print(arena, "%zu", page);
    entry->volume->capacity_bytes = (int64_t)page + 1;
    reply->entries = arena_alloc(arena, sizeof(void *));
    reply->entries[reply->n_entries++] = entry;
    reply->next_token = arena_print(arena, "%zu", next);
    if (++pages_read > 10000)
        return error_new(CODE_ABORTED, "enough of this");
    return NULL;
}

static struct driver_ops listing_driver = {
    .name = "csi", .close = silent_close, .call = list_volumes};

static void
set_facts(void)
{
    struct driver_facts *facts = driver_facts_new();
    facts->is_known = facts->is_ready = true;
    facts->controller = UINT64_C(1)
                        << CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES;
    driver_set_facts(connection->driver, facts);
}

static void
check_endless(struct error *error)
{
    CHECK(error && error->code == CODE_INTERNAL);
    CHECK(error && strstr(error->message, "connection \"a\" does not end"));
    CHECK(pages_read <= 3 * (before_circle + circle) + 1);
    error_free(error);
}

static struct error *
find_size(struct call *call, const char *id, int64_t *size_bytes)
{
    Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;
    struct attach_facts facts;
    volume.volume_id = (char *)id;
    struct attachment attachment = {
        .router = &router, .set = set, .connection = connection, .call = call, .volume = &volume};
    pages_read = 0;
    struct error *error = attach_find_facts(&attachment, &facts);
    *size_bytes = facts.size_bytes;
    return error;
}

static struct error *
find_volume(struct call *call, const char *id, void **found)
{
    pages_read = 0;
    return driver_inventory_get_volume(call, set, connection, id, found);
}

static void
test_searches(struct call *call)
{
    static const size_t sizes[][2] = {{0, 1}, {1, 1}, {0, 2}, {3, 7}, {40, 1}, {1, 40}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int64_t size_bytes;
        void *found;
        before_circle = sizes[i][0];
        circle = sizes[i][1];
        check_endless(find_size(call, "v:a/none", &size_bytes));
        check_endless(find_volume(call, "v:a/none", &found));
        /* What stands in it is found all the same. */
        size_t last = before_circle + circle - 1;
        const char *id = arena_print(call_arena(call), "v:a/%zu", last);
        CHECK(!find_size(call, id, &size_bytes));
        CHECK_NUMBER(size_bytes, (long long)last + 1);
        CHECK(!find_volume(call, id, &found));
        CHECK_TEXT(((Skycap__V1__VolumeInfo *)found)->volume->volume_id, id);
    }
}

static void
test_new_tokens_for_ever(void)
{
    struct list_end end;
    char token[32];
    struct error *error = NULL;
    size_t pages = 0;
    list_end_init(&end, "a", "");
    while (!error && pages <= LIST_END_MAX_PAGES) {
        snprintf(token, sizeof token, "%zu", pages++);
        error = list_end_check(&end, token);
    }
    CHECK_NUMBER((long long)pages, LIST_END_MAX_PAGES);
    CHECK(!list_end_check(&end, ""));
    error_free(error);
}

int
main(void)
{
    struct log log = {.fd = 2, .level = LOG_ERROR};
    CHECK(!runtime_open(&(struct runtime_options){.log = &log}, &runtime));
    router.runtime = runtime;
    router.log = &log;
    set = connection_set_new(1);
    connection = add_connection(set, silent_driver_new(runtime, "1", NULL, NULL), "a",
                                "driver: csi\noptions: {endpoint: 'unix:///x'}\n");
    connection->spec->driver = &listing_driver;
    set_facts();
    struct call *call = call_new_detached(runtime, 0);
    call->scope.context = &router;
    test_searches(call);
    test_new_tokens_for_ever();
    call_free_detached(call);
    connection_set_release(set);
    runtime_close(runtime);
    return check_report("endless lists");
}
