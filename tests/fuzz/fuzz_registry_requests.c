/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, taken as a request of skycap.v1.Registry/Announce or ListEntries, or of skycap.v1.ClusterStore: it is done or refused for what is wrong with it.
 * What was announced can be listed, and what was written can be read as it was.
 */
#include <string.h>

#include "base/log.h"
#include "message/message_text.h"
#include "proto/cluster_store.rpc.h"
#include "proto/registry.rpc.h"
#include "registry/registry_internal.h"
#include "require.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/call.h"
#include "store/registry_store.h"

static struct runtime *runtime;
static struct store *store;
static struct registry *registry;
static unsigned served; /* requests, by this registry */

/* A new one after a while, so that it does not fill the memory. */
static void
open_registry(void)
{
    static const struct log quiet = {.level = LOG_ERROR + 1, .fd = 2};
    static const char *const nobody[] = {NULL};
    if (registry && ++served < 50000)
        return;
    served = 0;
    registry_close(registry);
    store_close(store);
    if (!runtime)
        REQUIRE(!runtime_open(&(struct runtime_options){.log = &quiet}, &runtime));
    REQUIRE(!store_open("memory:", NULL, &store));
    const struct registry_options options = {
        .store = store, .readers = nobody, .is_open = true, .runtime = runtime, .log = &quiet};
    REQUIRE(!registry_open(&options, &registry));
}

/* The code of the answer. */
static enum code
run(const struct method *method, const void *handlers, const void *request, void *reply,
    struct call *call)
{
    protobuf_c_message_init(method->output, reply);
    struct error *error AUTO(error_cleanup) =
        call_delegate(call, method, handlers, registry, request, reply);
    return error ? error->code : CODE_OK;
}

/* ---- what must be true of answers ---- */

static void
check_announced(const Skycap__V1__AnnounceRequest *request, enum code code)
{
    REQUIRE(code == CODE_OK || code == CODE_INVALID_ARGUMENT);
    if (code == CODE_OK)
        REQUIRE(!request->controller_id[0] != !request->node_id[0] && request->n_attributes <= 64);
}

static void
check_written(const Skycap__V1__WriteRowsRequest *request, enum code code, struct call *call)
{
    REQUIRE(code == CODE_OK || code == CODE_INVALID_ARGUMENT || code == CODE_ABORTED);
    for (size_t i = 0; code == CODE_OK && i < request->n_changes; i++) {
        const Skycap__V1__RowChange *change = request->changes[i];
        Skycap__V1__GetRowRequest wanted = SKYCAP__V1__GET_ROW_REQUEST__INIT;
        Skycap__V1__Row row;
        wanted.key = change->key;
        enum code found =
            run(SKYCAP_V1_CLUSTER_STORE_GET, &registry_rows_handlers, &wanted, &row, call);
        REQUIRE(found == (change->is_removal ? CODE_NOT_FOUND : CODE_OK));
        if (found == CODE_OK)
            REQUIRE(row.value.len == change->value.len &&
                    (!row.value.len || !memcmp(row.value.data, change->value.data, row.value.len)));
    }
}

static void
check_listed(const Skycap__V1__ListRowsRequest *request, const Skycap__V1__ListRowsReply *reply,
             enum code code)
{
    REQUIRE(code == CODE_OK || code == CODE_INVALID_ARGUMENT);
    const char *last = request->after;
    for (size_t i = 0; code == CODE_OK && i < reply->n_rows; i++) {
        REQUIRE(strcmp(reply->rows[i]->key, last) > 0);
        REQUIRE(!strncmp(reply->rows[i]->key, request->prefix, strlen(request->prefix)));
        last = reply->rows[i]->key;
    }
    if (code == CODE_OK && request->limit)
        REQUIRE(reply->n_rows <= request->limit);
}

/* ---- one request ---- */

static void
serve(unsigned number, const ProtobufCMessage *request, struct call *call)
{
    union {
        Skycap__V1__AnnounceReply announce;
        Skycap__V1__ListEntriesReply entries;
        Skycap__V1__Row row;
        Skycap__V1__ListRowsReply rows;
        Skycap__V1__WriteRowsReply write;
    } reply;
    enum code code;
    switch (number) {
    case 0:
        code = run(SKYCAP_V1_REGISTRY_ANNOUNCE, &registry_handlers, request, &reply, call);
        check_announced((const Skycap__V1__AnnounceRequest *)request, code);
        break;
    case 1:
        code = run(SKYCAP_V1_REGISTRY_LIST_ENTRIES, &registry_handlers, request, &reply, call);
        REQUIRE(code == CODE_OK || code == CODE_INVALID_ARGUMENT);
        break;
    case 2:
        code = run(SKYCAP_V1_CLUSTER_STORE_WRITE, &registry_rows_handlers, request, &reply, call);
        check_written((const Skycap__V1__WriteRowsRequest *)request, code, call);
        break;
    case 3:
        code = run(SKYCAP_V1_CLUSTER_STORE_LIST, &registry_rows_handlers, request, &reply, call);
        check_listed((const Skycap__V1__ListRowsRequest *)request, &reply.rows, code);
        break;
    default:
        code = run(SKYCAP_V1_CLUSTER_STORE_GET, &registry_rows_handlers, request, &reply, call);
        REQUIRE(code == CODE_OK || code == CODE_INVALID_ARGUMENT || code == CODE_NOT_FOUND);
        break;
    }
}

/* The first byte says which. The rest is checked as the server checks what it receives. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        &skycap__v1__announce_request__descriptor,   &skycap__v1__list_entries_request__descriptor,
        &skycap__v1__write_rows_request__descriptor, &skycap__v1__list_rows_request__descriptor,
        &skycap__v1__get_row_request__descriptor,
    };
    if (!size)
        return 0;
    open_registry();
    unsigned number = data[0] % COUNT_OF(types);
    ProtobufCMessage *request = protobuf_c_message_unpack(types[number], NULL, size - 1, data + 1);
    if (!request)
        return 0;
    if (message_text_check(types[number], data + 1, size - 1) == MESSAGE_TEXT_VALID) {
        struct call *call = call_new_detached(runtime, 0);
        serve(number, request, call);
        call_free_detached(call);
    }
    protobuf_c_message_free_unpacked(request, NULL);
    return 0;
}
