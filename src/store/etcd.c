/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on etcd, for several servers that share one: as durable as a majority of etcd's
 * members.
 *
 * Revisions are etcd's own, which count all writes to etcd: they have gaps where others write.
 * Reads are linearizable: whichever member answers, it has seen all writes that were answered
 * before. Only the latest changes are kept here. Leases are not used: the owner of an entry decides
 * when it expires, and an expired entry stays until somebody removes it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/etcd_internal.h"

#define PAGE 512   /* entries per request */
#define RESTARTS 3 /* of a list whose revision was compacted before it was complete */

static struct etcd_store *
own(struct store *store)
{
    return (struct etcd_store *)store;
}

/* ---- reading ---- */

static struct store_entry
copy_entry(struct arena *arena, const char *key, const Mvccpb__KeyValue *found)
{
    return store_copy_entry(arena, key, strlen(key), found->value.data, found->value.len,
                            (uint64_t)found->mod_revision);
}

static struct error *
etcd_get(struct store *base, const char *key, struct arena *arena, struct store_entry *out)
{
    struct etcd_store *store = own(base);
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RangeResponse *reply;
    uint8_t first[2048];
    struct arena decoded;
    arena_init(&decoded, first, sizeof first, ETCD_DECODED_BYTES);
    request.key = etcd_key(&store->place, key, &decoded);
    struct error *error = etcd_begin(store);
    if (!error)
        error = etcd_read_range(store, &request, &decoded, &reply);
    if (!error && !reply->n_kvs)
        error = store_error_not_found(key);
    if (!error)
        *out = copy_entry(arena, key, reply->kvs[0]);
    arena_clear(&decoded);
    return error;
}

/*
 * Once the mark was seen it is assumed to exist, even if somebody deletes it: revisions do not go
 * back.
 */
static struct error *
etcd_revision(struct store *base, uint64_t *revision)
{
    struct etcd_store *store = own(base);
    bool is_there = false;
    struct error *error = etcd_begin(store);
    if (!error)
        error = etcd_read_mark(store, revision, &is_there);
    if (!error && is_there)
        atomic_store(&store->is_marked, true);
    if (!error && !atomic_load(&store->is_marked))
        *revision = 0;
    return error;
}

/* ---- lists ---- */

/* A list is read in pages, all of one revision. */
struct listing {
    ProtobufCBinaryData next; /* the start of the next page */
    ProtobufCBinaryData end;
    int64_t revision; /* 0: that of the first page */
    size_t limit;     /* 0: none */
    size_t page;
    size_t capacity; /* of the list */
    bool is_complete;
    struct arena keys; /* of next and end */
};

static void
begin_listing(struct listing *listing, const struct etcd_place *place, const char *prefix,
              const char *after, size_t limit)
{
    *listing = (struct listing){.limit = limit, .page = PAGE};
    arena_init(&listing->keys, NULL, 0, 0);
    ProtobufCBinaryData start = etcd_key(place, prefix, &listing->keys);
    listing->end = etcd_key_end(start, &listing->keys);
    /* For the empty prefix, the first key would be the mark. */
    if (after || !prefix[0])
        start = etcd_key_next(etcd_key(place, after ? after : "", &listing->keys), &listing->keys);
    listing->next = start;
    size_t common = start.len < listing->end.len ? start.len : listing->end.len;
    listing->is_complete = memcmp(start.data, listing->end.data, common) >= 0;
}

static void
take_page(struct etcd_store *store, struct listing *listing,
          const Etcdserverpb__RangeResponse *reply, struct arena *arena, struct store_list *out)
{
    for (size_t i = 0; i < reply->n_kvs; i++) {
        const char *key = etcd_own_key(&store->place, reply->kvs[i]->key, arena);
        if (key)
            store_append_entry(arena, out, &listing->capacity,
                               copy_entry(arena, key, reply->kvs[i]));
    }
    bool is_full = listing->limit && out->count >= listing->limit;
    out->has_more = is_full && reply->more;
    listing->is_complete = is_full || !reply->more || !reply->n_kvs;
    listing->revision = listing->revision ? listing->revision : reply->header->revision;
    listing->page = 2 * listing->page < PAGE ? 2 * listing->page : PAGE;
    if (!listing->is_complete)
        listing->next = etcd_key_next(reply->kvs[reply->n_kvs - 1]->key, &listing->keys);
}

/*
 * etcd limits entries, not bytes: a page of large ones may be too large for us. Then the next
 * request asks for fewer.
 */
static bool
was_too_large(struct listing *listing, const struct error *error)
{
    if (!error || error->code != CODE_RESOURCE_EXHAUSTED || error->from_peer || listing->page == 1)
        return false;
    listing->page = listing->page > 4 ? listing->page / 4 : 1;
    return true;
}

static struct error *
read_page(struct etcd_store *store, struct listing *listing, struct arena *arena,
          struct store_list *out)
{
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RangeResponse *reply;
    size_t left = listing->limit ? listing->limit - out->count : listing->page;
    struct arena decoded;
    arena_init(&decoded, NULL, 0, ETCD_DECODED_BYTES);
    request.key = listing->next;
    request.range_end = listing->end;
    request.revision = listing->revision;
    request.limit = (int64_t)(left < listing->page ? left : listing->page);
    struct error *error = etcd_read_range(store, &request, &decoded, &reply);
    if (!error)
        take_page(store, listing, reply, arena, out);
    arena_clear(&decoded);
    if (!was_too_large(listing, error))
        return error;
    error_free(error);
    return NULL;
}

static struct error *
list_at_one_revision(struct etcd_store *store, const char *prefix, const char *after, size_t limit,
                     struct arena *arena, struct store_list *out)
{
    struct listing listing;
    struct error *error = NULL;
    *out = (struct store_list){0};
    begin_listing(&listing, &store->place, prefix, after, limit);
    while (!error && !listing.is_complete)
        error = read_page(store, &listing, arena, out);
    arena_clear(&listing.keys);
    return error;
}

static struct error *
etcd_list(struct store *base, const char *prefix, const char *after, size_t limit,
          struct arena *arena, struct store_list *out)
{
    struct error *error = etcd_begin(own(base));
    for (int i = 0; !error && i < RESTARTS; i++) {
        error = list_at_one_revision(own(base), prefix, after, limit, arena, out);
        if (!error || error->code != CODE_OUT_OF_RANGE || i + 1 == RESTARTS)
            return error;
        error_free(STEAL(error));
    }
    return error;
}

/* ---- opening and closing ---- */

static void
free_store(struct etcd_store *store)
{
    etcd_client_close(&store->client);
    etcd_place_clear(&store->place);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* The store opens even if nobody answers yet: in a cluster all start at the same time. */
static struct error *
try_to_begin(struct etcd_store *store)
{
    struct error *error = etcd_begin(store);
    bool may_come = error && error->code == CODE_UNAVAILABLE && !store_is_refused(error);
    return may_come ? error_forgive(error, CODE_UNAVAILABLE) : error;
}

static struct error *
etcd_open(const char *place, const struct store_options *options, struct store **out)
{
    struct etcd_place parsed;
    struct error *error = etcd_place_parse(place, &parsed);
    if (error)
        return error;
    if (!options || !options->runtime) {
        etcd_place_clear(&parsed);
        return error_new(
            CODE_INVALID_ARGUMENT,
            "a store on etcd is reached over the network, which is not to be had here");
    }
    struct etcd_store *store = memory_zeroed(sizeof *store);
    store->base.ops = &etcd_store_ops;
    store->place = parsed;
    store->log = runtime_log(options->runtime);
    pthread_mutex_init(&store->lock, NULL);
    error = etcd_client_open(&store->client, &store->place, options);
    if (!error)
        error = try_to_begin(store);
    if (error) {
        free_store(store);
        return error;
    }
    *out = &store->base;
    return NULL;
}

static void
etcd_close(struct store *base)
{
    struct etcd_store *store = own(base);
    etcd_client_stop(&store->client);
    if (atomic_load(&store->is_begun)) {
        etcd_watch_stop(&store->watch);
        history_clear(&base->history);
    }
    free_store(store);
}

static void
etcd_stop(struct store *base)
{
    etcd_client_stop(&own(base)->client);
}

const struct store_ops etcd_store_ops = {
    .scheme = "etcd",
    .form = "etcd://HOST:PORT[,HOST:PORT...][/PREFIX]",
    .open = etcd_open,
    .close = etcd_close,
    .stop = etcd_stop,
    .get = etcd_get,
    .write = etcd_write,
    .list = etcd_list,
    .revision = etcd_revision,
};
