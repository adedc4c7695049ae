/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on a registry: the rows that skycap.v1.ClusterStore keeps for the nodes of a cluster.
 *
 * Revisions are those of the registry's store, which count its other writes too: they have gaps. A
 * long list is read in pages, each of another revision.
 *
 * A call that was certainly not carried out is repeated until its time is over, because the
 * registry may be restarting; one that only reads, whatever has become of it. A write that may have
 * been carried out is never repeated: it could undo a later one.
 */
#include "store/registry_store.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "proto/cluster_store.rpc.h"
#include "registry/client/registry_name.h"
#include "rpc/client/channel.h"
#include "rpc/loop/timers.h"
#include "rpc/server/call.h"
#include "store/store_ops.h"

#define SCHEME "registry://"
#define MAX_PREFIX 256
#define MS_NS UINT64_C(1000000)
/* Longer than a registry waits for its etcd. */
#define LONGEST_CALL_NS (5000 * MS_NS)
#define PAUSE_NS (100 * MS_NS)
#define CONNECT_MS 800
#define RECONNECT_MS 200
#define PING_MS 10000
#define PING_ANSWER_MS 3000
/* To decode an answer: a page is at most 3 MiB. */
#define DECODED_BYTES ((size_t)16 << 20)

struct registry_store {
    struct store base; /* must be first */
    char *address;
    char *prefix; /* of all our keys: empty, or ends in a slash */
    struct channel *channel;
    struct call *calls;      /* owns all calls, so that they can be ended together */
    atomic_bool is_answered; /* before the first answer, each call is tried once */
};

static struct registry_store *
own(struct store *store)
{
    return (struct registry_store *)store;
}

/* ---- limits ---- */

struct error *
registry_store_check_key(const char *key)
{
    size_t size = strlen(key);
    if (size >= 1 && size <= REGISTRY_STORE_MAX_KEY)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "the key of a row has 1 to %d bytes, not %zu",
                     REGISTRY_STORE_MAX_KEY, size);
}

struct error *
registry_store_check_changes(const struct store_change *changes, size_t count)
{
    struct error *error = NULL;
    if (count < 1 || count > REGISTRY_STORE_MAX_CHANGES)
        return error_new(CODE_INVALID_ARGUMENT, "a write has 1 to %d changes, not %zu",
                         REGISTRY_STORE_MAX_CHANGES, count);
    for (size_t i = 0; !error && i < count; i++) {
        error = registry_store_check_key(changes[i].key);
        if (!error && changes[i].value && changes[i].value_size > REGISTRY_STORE_MAX_VALUE)
            error = error_new(CODE_INVALID_ARGUMENT,
                              "the value for \"%s\" has %zu bytes; %u are the limit",
                              changes[i].key, changes[i].value_size, REGISTRY_STORE_MAX_VALUE);
    }
    return error;
}

/* ---- calls ---- */

enum outcome { ANSWERED, NOT_BEGUN, IN_DOUBT };

/*
 * UNAVAILABLE from the registry: its own store did not answer, and may have made the write. UNKNOWN
 * and the like: something between us and the registry has answered, or it is shutting down.
 */
static enum outcome
judge(const struct error *error)
{
    if (!error)
        return ANSWERED;
    switch (error->code) {
    case CODE_UNAVAILABLE:
        return error->from_peer || error->in_doubt ? IN_DOUBT : NOT_BEGUN;
    case CODE_DEADLINE_EXCEEDED:
    case CODE_CANCELLED:
    case CODE_UNKNOWN:
        return IN_DOUBT;
    case CODE_INTERNAL:
        return error->from_peer ? ANSWERED : IN_DOUBT;
    default:
        return ANSWERED;
    }
}

static struct error *
unavailable(const struct registry_store *store, bool in_doubt, const struct error *last)
{
    struct error *error =
        error_new(CODE_UNAVAILABLE, "the registry at %s does not answer: %s%s", store->address,
                  last->message, in_doubt ? ". Whether the change was made is not known" : "");
    error->in_doubt = in_doubt;
    return error;
}

/* False: there is no time for another attempt, or it is not wanted. */
static bool
pause_before_next(struct registry_store *store, uint64_t end)
{
    if (!atomic_load(&store->is_answered) || timers_now() + PAUSE_NS >= end ||
        call_is_cancelled(store->calls))
        return false;
    nanosleep(&(struct timespec){.tv_nsec = (long)PAUSE_NS}, NULL);
    return true;
}

static struct error *
attempt(struct registry_store *store, const struct method *method, const ProtobufCMessage *request,
        uint64_t end, struct arena *arena, void *reply)
{
    uint64_t now = timers_now();
    const struct call_options options = {
        .timeout_ns = end > now ? end - now : 1,
        .parent = call_as_parent(store->calls),
    };
    return channel_call(store->channel, method, request, &options, arena, reply);
}

static struct error *
ask(struct registry_store *store, const struct method *method, const ProtobufCMessage *request,
    struct arena *arena, void *reply)
{
    bool is_write = method == SKYCAP_V1_CLUSTER_STORE_WRITE;
    uint64_t end = timers_now() + LONGEST_CALL_NS;
    for (;;) {
        struct error *error AUTO(error_cleanup) =
            attempt(store, method, request, end, arena, reply);
        enum outcome outcome = judge(error);
        if (outcome == ANSWERED) {
            atomic_store(&store->is_answered, true);
            return error_wrap(STEAL(error), "the registry at %s", store->address);
        }
        bool in_doubt = is_write && outcome == IN_DOUBT;
        if (in_doubt || !pause_before_next(store, end))
            return unavailable(store, in_doubt, error);
    }
}

/* ---- reading ---- */

static char *
key_of(const struct registry_store *store, const char *key, struct arena *arena)
{
    return arena_print(arena, "%s%s", store->prefix, key);
}

static struct store_entry
copy_row(struct arena *arena, const char *key, const Skycap__V1__Row *row)
{
    return store_copy_entry(arena, key, strlen(key), row->value.data, row->value.len,
                            row->revision);
}

static struct error *
rows_get(struct store *base, const char *key, struct arena *arena, struct store_entry *out)
{
    struct arena decoded AUTO(arena_clear);
    arena_init(&decoded, NULL, 0, DECODED_BYTES);
    Skycap__V1__GetRowRequest request = SKYCAP__V1__GET_ROW_REQUEST__INIT;
    Skycap__V1__Row *row;
    request.key = key_of(own(base), key, &decoded);
    struct error *error =
        ask(own(base), SKYCAP_V1_CLUSTER_STORE_GET, &request.base, &decoded, &row);
    if (!error)
        *out = copy_row(arena, key, row);
    return error;
}

static struct error *
rows_revision(struct store *base, uint64_t *revision)
{
    struct arena decoded AUTO(arena_clear);
    arena_init(&decoded, NULL, 0, DECODED_BYTES);
    Skycap__V1__GetRevisionRequest request = SKYCAP__V1__GET_REVISION_REQUEST__INIT;
    Skycap__V1__GetRevisionReply *reply;
    struct error *error =
        ask(own(base), SKYCAP_V1_CLUSTER_STORE_GET_REVISION, &request.base, &decoded, &reply);
    if (!error)
        *revision = reply->revision;
    return error;
}

/* ---- lists ---- */

struct listing {
    const char *prefix;
    const char *after; /* NULL: from the first */
    size_t limit;      /* 0: none */
    size_t capacity;   /* of the list */
};

static struct error *
take_page(const struct registry_store *store, struct listing *listing,
          const Skycap__V1__ListRowsReply *reply, struct arena *arena, struct store_list *out)
{
    size_t prefix_size = strlen(store->prefix);
    for (size_t i = 0; i < reply->n_rows && (!listing->limit || out->count < listing->limit); i++) {
        const Skycap__V1__Row *row = reply->rows[i];
        if (strncmp(row->key, store->prefix, prefix_size) != 0)
            return error_new(CODE_INTERNAL, "the registry at %s lists rows that were not asked for",
                             store->address);
        store_append_entry(arena, out, &listing->capacity,
                           copy_row(arena, row->key + prefix_size, row));
    }
    out->has_more = reply->has_more && reply->n_rows;
    if (reply->n_rows)
        listing->after = out->entries[out->count - 1].key;
    return NULL;
}

static struct error *
read_page(struct registry_store *store, struct listing *listing, struct arena *arena,
          struct store_list *out)
{
    struct arena decoded AUTO(arena_clear);
    arena_init(&decoded, NULL, 0, DECODED_BYTES);
    Skycap__V1__ListRowsRequest request = SKYCAP__V1__LIST_ROWS_REQUEST__INIT;
    Skycap__V1__ListRowsReply *reply;
    size_t room = listing->limit ? listing->limit - out->count : 0;
    request.prefix = key_of(store, listing->prefix, &decoded);
    if (listing->after)
        request.after = key_of(store, listing->after, &decoded);
    request.limit = room < UINT32_MAX ? (uint32_t)room : 0;
    struct error *error = ask(store, SKYCAP_V1_CLUSTER_STORE_LIST, &request.base, &decoded, &reply);
    return error ? error : take_page(store, listing, reply, arena, out);
}

static struct error *
rows_list(struct store *base, const char *prefix, const char *after, size_t limit,
          struct arena *arena, struct store_list *out)
{
    struct listing listing = {.prefix = prefix, .after = after, .limit = limit};
    struct error *error;
    do
        error = read_page(own(base), &listing, arena, out);
    while (!error && out->has_more && (!limit || out->count < limit));
    return error;
}

/* ---- writing ---- */

static Skycap__V1__RowChange *
make_change(const struct registry_store *store, const struct store_change *change,
            struct arena *arena)
{
    Skycap__V1__RowChange *message = arena_alloc(arena, sizeof *message);
    skycap__v1__row_change__init(message);
    message->key = key_of(store, change->key, arena);
    message->is_removal = !change->value;
    if (change->value)
        message->value = (ProtobufCBinaryData){change->value_size, (uint8_t *)change->value};
    if (change->expected == STORE_ABSENT) {
        message->expectation = SKYCAP__V1__ROW_CHANGE__EXPECTATION__ABSENT;
    } else if (change->expected != STORE_ANY) {
        message->expectation = SKYCAP__V1__ROW_CHANGE__EXPECTATION__REVISION;
        message->revision = change->expected;
    }
    return message;
}

static struct error *
rows_write(struct store *base, const struct store_change *changes, size_t count, uint64_t *revision)
{
    struct error *error = registry_store_check_changes(changes, count);
    if (error)
        return error;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, DECODED_BYTES);
    Skycap__V1__RowChange *messages[REGISTRY_STORE_MAX_CHANGES];
    Skycap__V1__WriteRowsRequest request = SKYCAP__V1__WRITE_ROWS_REQUEST__INIT;
    Skycap__V1__WriteRowsReply *reply;
    for (size_t i = 0; i < count; i++)
        messages[i] = make_change(own(base), &changes[i], &arena);
    request.changes = messages;
    request.n_changes = count;
    error = ask(own(base), SKYCAP_V1_CLUSTER_STORE_WRITE, &request.base, &arena, &reply);
    if (!error)
        *revision = reply->revision;
    return error;
}

/* ---- opening and closing ---- */

static void
rows_close(struct store *base)
{
    struct registry_store *store = own(base);
    call_cancel_detached(store->calls);
    channel_close(store->channel);
    call_free_detached(store->calls);
    free(store->address);
    free(store->prefix);
    free(store);
}

static void
rows_stop(struct store *base)
{
    call_cancel_detached(own(base)->calls);
}

/* The store opens even if the registry does not answer yet: in a cluster all start together. */
static struct error *
check_answer(struct registry_store *store)
{
    uint64_t revision;
    struct error *error = rows_revision(&store->base, &revision);
    bool may_come = error && error->code == CODE_UNAVAILABLE && !store_is_refused(error);
    return may_come ? error_forgive(error, CODE_UNAVAILABLE) : error;
}

static bool
is_local(const char *address)
{
    return !strncmp(address, "unix:", 5) || !strncmp(address, "unix-abstract:", 14);
}

bool
registry_store_is_remote(const char *url)
{
    size_t size = strlen(SCHEME);
    return !strncmp(url, SCHEME, size) && !is_local(url + size);
}

/* From "//HOST:PORT/PREFIX", or the address of a unix socket, which has no prefix. */
static struct error *
parse_place(const char *place, struct registry_store *out)
{
    if (strncmp(place, "//", 2) != 0 || !place[2])
        return error_new(CODE_INVALID_ARGUMENT, "\"registry:%s\" names no registry", place);
    const char *address = place + 2;
    const char *slash = is_local(address) ? NULL : strchr(address, '/');
    const char *prefix = slash ? slash + 1 : "";
    size_t size = strlen(prefix);
    if (size > MAX_PREFIX || !utf8_is_valid(prefix, size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"registry:%s\": the prefix is at most %d bytes of text", place,
                         MAX_PREFIX);
    struct buffer text AUTO(buffer_clear) = {0};
    buffer_print(&text, "%s%s", prefix, !size || prefix[size - 1] == '/' ? "" : "/");
    out->prefix = memory_string(buffer_text(&text));
    out->address = memory_string(address);
    if (slash)
        out->address[slash - address] = '\0';
    return NULL;
}

static struct error *
open_channel(struct registry_store *store, const struct store_options *options)
{
    const struct channel_options channel_options = {
        .tls = options->tls,
        .tls_name = options->tls ? REGISTRY_NAME : NULL,
        .connect_timeout_ms = CONNECT_MS,
        .max_backoff_ms = RECONNECT_MS,
        .keepalive_ms = PING_MS,
        .keepalive_timeout_ms = PING_ANSWER_MS,
    };
    return channel_open(options->runtime, store->address, &channel_options, &store->channel);
}

static struct error *
rows_open(const char *place, const struct store_options *options, struct store **out)
{
    if (!options || !options->runtime)
        return error_new(CODE_INVALID_ARGUMENT, "a store on a registry is reached over the "
                                                "network, which is not to be had here");
    struct registry_store *store = memory_zeroed(sizeof *store);
    store->base.ops = &registry_store_ops;
    struct error *error = parse_place(place, store);
    if (!error)
        error = open_channel(store, options);
    if (error) {
        free(store->address);
        free(store->prefix);
        free(store);
        return error_wrap(error, "say %s", registry_store_ops.form);
    }
    store->calls = call_new_detached(options->runtime, 0);
    error = check_answer(store);
    if (error)
        rows_close(&store->base);
    else
        *out = &store->base;
    return error;
}

const struct store_ops registry_store_ops = {
    .scheme = "registry",
    .form = "registry://HOST:PORT[/PREFIX]",
    .is_unwatched = true,
    .open = rows_open,
    .close = rows_close,
    .stop = rows_stop,
    .get = rows_get,
    .write = rows_write,
    .list = rows_list,
    .revision = rows_revision,
};
