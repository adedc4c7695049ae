/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to etcd: one transaction per write, which compares what the changes expect. */
#include <inttypes.h>
#include <string.h>

#include "store/etcd_internal.h"

#define REQUEST_CASE(name) ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_##name

/* ---- the parts of a transaction ---- */

static Etcdserverpb__Compare *
new_compare(struct arena *arena, ProtobufCBinaryData key, uint64_t revision)
{
    Etcdserverpb__Compare *compare = arena_alloc(arena, sizeof *compare);
    etcdserverpb__compare__init(compare);
    compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
    compare->key = key;
    compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
    compare->mod_revision = (int64_t)revision;
    return compare;
}

static Etcdserverpb__RequestOp *
new_operation(struct arena *arena)
{
    Etcdserverpb__RequestOp *operation = arena_alloc(arena, sizeof *operation);
    etcdserverpb__request_op__init(operation);
    return operation;
}

static Etcdserverpb__RequestOp *
new_put(struct arena *arena, ProtobufCBinaryData key, const uint8_t *value, size_t size)
{
    Etcdserverpb__RequestOp *operation = new_operation(arena);
    Etcdserverpb__PutRequest *put = arena_alloc(arena, sizeof *put);
    etcdserverpb__put_request__init(put);
    put->key = key;
    put->value = (ProtobufCBinaryData){size, (uint8_t *)value};
    operation->request_case = REQUEST_CASE(PUT);
    operation->request_put = put;
    return operation;
}

static Etcdserverpb__RequestOp *
new_delete(struct arena *arena, ProtobufCBinaryData key)
{
    Etcdserverpb__RequestOp *operation = new_operation(arena);
    Etcdserverpb__DeleteRangeRequest *request = arena_alloc(arena, sizeof *request);
    etcdserverpb__delete_range_request__init(request);
    request->key = key;
    operation->request_case = REQUEST_CASE(DELETE_RANGE);
    operation->request_delete_range = request;
    return operation;
}

static Etcdserverpb__RequestOp *
new_look(struct arena *arena, ProtobufCBinaryData key)
{
    Etcdserverpb__RequestOp *operation = new_operation(arena);
    Etcdserverpb__RangeRequest *range = arena_alloc(arena, sizeof *range);
    etcdserverpb__range_request__init(range);
    range->key = key;
    range->keys_only = true;
    operation->request_case = REQUEST_CASE(RANGE);
    operation->request_range = range;
    return operation;
}

/* ---- the transaction ---- */

/* If a comparison fails, the transaction reads the keys that were compared, in the same order. */
static void
build(const struct etcd_place *place, const struct store_change *changes, size_t count,
      struct arena *arena, Etcdserverpb__TxnRequest *out)
{
    etcdserverpb__txn_request__init(out);
    out->compare = arena_alloc(arena, count * sizeof *out->compare);
    out->failure = arena_alloc(arena, count * sizeof *out->failure);
    out->success = arena_alloc(arena, count * sizeof *out->success);
    for (size_t i = 0; i < count; i++) {
        const struct store_change *change = &changes[i];
        ProtobufCBinaryData key = etcd_key(place, change->key, arena);
        out->success[out->n_success++] =
            change->value ? new_put(arena, key, change->value, change->value_size)
                          : new_delete(arena, key);
        if (change->expected == STORE_ANY)
            continue;
        out->compare[out->n_compare++] = new_compare(arena, key, change->expected);
        out->failure[out->n_failure++] = new_look(arena, key);
    }
}

/*
 * It expects something that is no longer true once it is done, so a second attempt notices that and
 * does nothing.
 */
static bool
finds_itself(const struct store_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].expected != STORE_ANY &&
            (changes[i].value || changes[i].expected != STORE_ABSENT))
            return true;
    return false;
}

static uint64_t
revision_found(const Etcdserverpb__ResponseOp *response)
{
    const Etcdserverpb__RangeResponse *range =
        response->response_case == ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE
            ? response->response_range
            : NULL;
    return range && range->n_kvs ? (uint64_t)range->kvs[0]->mod_revision : STORE_ABSENT;
}

static struct error *
tell_what_was_found(const struct store_change *changes, size_t count,
                    const Etcdserverpb__TxnResponse *reply)
{
    size_t at = 0;
    for (size_t i = 0; i < count && at < reply->n_responses; i++) {
        if (changes[i].expected == STORE_ANY)
            continue;
        struct error *error =
            store_check_expected(&changes[i], revision_found(reply->responses[at++]));
        if (error)
            return error;
    }
    return error_new(CODE_INTERNAL, "etcd refused a write and does not tell why");
}

/*
 * What a second attempt has found may be the result of the first, or of somebody else. Takes the
 * error.
 */
static struct error *
leave_in_doubt(struct error *found)
{
    struct error *error =
        error_new(CODE_UNAVAILABLE,
                  "etcd did not answer at first, and when it was asked again: %s. "
                  "Whether that was this write is not known: read again",
                  found->message);
    error->in_doubt = true;
    error_free(found);
    return error;
}

static struct error *
commit(struct etcd_store *store, const struct store_change *changes, size_t count,
       struct arena *arena, uint64_t *revision)
{
    Etcdserverpb__TxnRequest request;
    Etcdserverpb__TxnResponse *reply;
    build(&store->place, changes, count, arena, &request);
    struct etcd_call call = {
        .method = ETCDSERVERPB_KV_TXN,
        .request = &request.base,
        .repeat = finds_itself(changes, count) ? ETCD_FINDS_ITSELF : ETCD_NEVER,
    };
    struct error *error = etcd_client_call(&store->client, &call, arena, &reply);
    if (!error)
        error = etcd_client_check_answer(&store->client, &call, reply->header);
    if (error)
        return error;
    if (reply->succeeded) {
        *revision = reply->header ? (uint64_t)reply->header->revision : 0;
        return NULL;
    }
    error = tell_what_was_found(changes, count, reply);
    return call.in_doubt ? leave_in_doubt(error) : error;
}

/* ---- writing ---- */

/* Before the first entry, so that there is never an entry without the mark. */
static struct error *
put_mark(struct etcd_store *store, struct arena *arena)
{
    if (atomic_load(&store->is_marked))
        return NULL;
    uint64_t revision;
    bool is_there;
    Etcdserverpb__TxnRequest request = ETCDSERVERPB__TXN_REQUEST__INIT;
    Etcdserverpb__TxnResponse *reply;
    ProtobufCBinaryData key = etcd_key(&store->place, "", arena);
    request.n_compare = request.n_success = 1;
    request.compare = (Etcdserverpb__Compare *[]){new_compare(arena, key, STORE_ABSENT)};
    request.success = (Etcdserverpb__RequestOp *[]){
        new_put(arena, key, (const uint8_t *)ETCD_MARK, strlen(ETCD_MARK))};
    struct etcd_call call = {.method = ETCDSERVERPB_KV_TXN, .request = &request.base};
    struct error *error = etcd_client_call(&store->client, &call, arena, &reply);
    if (!error && !reply->succeeded) /* somebody else was first */
        error = etcd_read_mark(store, &revision, &is_there);
    if (!error)
        atomic_store(&store->is_marked, true);
    return error;
}

struct error *
etcd_write(struct store *base, const struct store_change *changes, size_t count, uint64_t *revision)
{
    struct etcd_store *store = (struct etcd_store *)base;
    uint8_t first[4096];
    struct arena arena;
    arena_init(&arena, first, sizeof first, ETCD_DECODED_BYTES);
    struct error *error = etcd_begin(store);
    if (!error)
        error = put_mark(store, &arena);
    if (!error)
        error = commit(store, changes, count, &arena, revision);
    arena_clear(&arena);
    return error;
}
