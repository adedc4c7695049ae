/* SPDX-License-Identifier: Apache-2.0 */
/* The first answer of etcd: checks the mark below the prefix, and starts the watch. */
#include <string.h>

#include "store/etcd_internal.h"

struct error *
etcd_read_range(struct etcd_store *store, const Etcdserverpb__RangeRequest *request,
                struct arena *arena, Etcdserverpb__RangeResponse **reply)
{
    struct etcd_call call = {
        .method = ETCDSERVERPB_KV_RANGE,
        .request = &request->base,
        .asks_once = !atomic_load(&store->is_begun),
    };
    struct error *error = etcd_client_call(&store->client, &call, arena, reply);
    if (!error && !(*reply)->header)
        error = error_new(CODE_INTERNAL, "etcd answered without a header");
    if (!error)
        error = etcd_client_check_answer(&store->client, &call, (*reply)->header);
    return error;
}

static struct error *
check_mark(const struct etcd_place *place, ProtobufCBinaryData mark)
{
    if (mark.len == strlen(ETCD_MARK) && !memcmp(mark.data, ETCD_MARK, mark.len))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "what is below %s in etcd is of a newer skycap, or not of skycap: \"%s\" is "
                     "there with another value than \"%s\"",
                     place->prefix, place->prefix, ETCD_MARK);
}

struct error *
etcd_read_mark(struct etcd_store *store, uint64_t *revision, bool *is_there)
{
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RangeResponse *reply;
    uint8_t first[1024];
    struct arena arena;
    arena_init(&arena, first, sizeof first, ETCD_DECODED_BYTES);
    request.key = etcd_key(&store->place, "", &arena);
    struct error *error = etcd_read_range(store, &request, &arena, &reply);
    if (!error) {
        *revision = (uint64_t)reply->header->revision;
        *is_there = reply->n_kvs > 0;
        if (*is_there)
            error = check_mark(&store->place, reply->kvs[0]->value);
    }
    arena_clear(&arena);
    return error;
}

/*
 * If the mark is missing, nothing has ever been written below the prefix: the history is complete
 * from 0 on. The lock is held.
 */
static struct error *
begin_to_watch(struct etcd_store *store, uint64_t revision, bool is_marked)
{
    if (atomic_load(&store->is_begun))
        return NULL;
    atomic_store(&store->is_marked, is_marked);
    history_init(&store->base.history, is_marked ? revision : 0);
    struct error *error =
        etcd_watch_start(&store->watch, &store->client, &store->base.history, revision, store->log);
    if (error)
        history_clear(&store->base.history);
    else
        atomic_store(&store->is_begun, true);
    return error;
}

struct error *
etcd_begin(struct etcd_store *store)
{
    uint64_t revision = 0;
    bool is_marked = false;
    if (atomic_load(&store->is_begun))
        return NULL;
    struct error *error = etcd_read_mark(store, &revision, &is_marked);
    if (error)
        return error;
    pthread_mutex_lock(&store->lock);
    error = begin_to_watch(store, revision, is_marked);
    pthread_mutex_unlock(&store->lock);
    return error;
}
