/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the nodes of a registry: see node_watcher.h.
 *
 * The registry sends all nodes, a mark, then changes; after a gap it says so, and begins again. The
 * watcher keeps the ids that it was sent, with the number of the list since whose beginning each
 * was sent: at the mark, the others are gone.
 */
#include "registry/client/node_watcher.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "message/message_map.h"
#include "proto/registry.rpc.h"
#include "registry/client/path.h"
#include "registry/client/registry_name.h"
#include "rpc/server/call.h"

#define FIRST_PAUSE_MS 1000u
#define LONGEST_PAUSE_MS 10000u
/* A registry that falls silent is noticed after the sum of the last two. */
#define CONNECT_MS 3000u
#define PING_MS 10000u
#define PING_ANSWER_MS 3000u
#define MESSAGE_BYTES (64u * 1024) /* to decode one */
#define PAGE_BYTES (16u << 20)     /* to decode one: it has 1 MiB */
#define LONGEST_LIST_NS (UINT64_C(10) * 1000000000)

struct known {
    char *id;
    unsigned list;
};

struct node_watcher {
    struct node_watcher_options options;
    struct channel *channel;
    struct call *call;   /* parent of the watch; cancelling it ends the watch */
    struct known *known; /* sorted by id */
    size_t count;
    size_t capacity;
    unsigned list; /* the number of the last list, which may not be complete */
    bool is_followed;
    enum code trouble;    /* what was logged last; CODE_OK: none */
    pthread_mutex_t lock; /* for the following */
    pthread_cond_t changed;
    bool is_stopped;
    bool is_running;
};

/* ---- known nodes ---- */

/* The index of the id, or where to insert it. */
static size_t
find_place(const struct node_watcher *watcher, const char *id, bool *found)
{
    size_t low = 0, high = watcher->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(watcher->known[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < watcher->count && !strcmp(watcher->known[low].id, id);
    return low;
}

static void
remember(struct node_watcher *watcher, const char *id)
{
    bool found;
    size_t place = find_place(watcher, id, &found);
    struct known *known = watcher->known;
    if (!found) {
        if (watcher->count == watcher->capacity) {
            watcher->capacity = watcher->capacity ? 2 * watcher->capacity : 64;
            known = watcher->known = memory_resize(known, watcher->capacity * sizeof *known);
        }
        memmove(&known[place + 1], &known[place], (watcher->count - place) * sizeof *known);
        known[place].id = memory_string(id);
        watcher->count++;
    }
    known[place].list = watcher->list;
}

static void
forget(struct node_watcher *watcher, size_t place)
{
    struct known *known = watcher->known;
    char *id AUTO(memory_cleanup) = known[place].id;
    watcher->count--;
    memmove(&known[place], &known[place + 1], (watcher->count - place) * sizeof *known);
    watcher->options.removed(watcher->options.context, id);
}

/* ---- what the registry sends ---- */

/* The id, in the arena. NULL: the path is not that of a node. */
static const char *
read_id(const char *path, struct arena *arena)
{
    size_t size;
    const char *id = path_find_node(path, &size);
    return id ? arena_copy(arena, id, size) : NULL;
}

static void
take_entry(struct node_watcher *watcher, const Skycap__V1__RegistryEntry *entry,
           struct arena *arena)
{
    struct watched_node node = {
        .id = read_id(entry->path, arena),
        .address = entry->value,
        .attributes = message_map_read(entry->attributes, entry->n_attributes, arena),
        .is_expired = entry->is_expired,
        .registered_ms = entry->registered ? entry->registered->seconds * 1000 : 0,
    };
    if (!node.id)
        return;
    remember(watcher, node.id);
    watcher->options.changed(watcher->options.context, &node);
}

static void
take_removal(struct node_watcher *watcher, const char *path, struct arena *arena)
{
    bool found = false;
    const char *id = read_id(path, arena);
    size_t place = id ? find_place(watcher, id, &found) : 0;
    if (found)
        forget(watcher, place);
}

static void
end_list(struct node_watcher *watcher)
{
    for (size_t i = watcher->count; i-- > 0;)
        if (watcher->known[i].list != watcher->list)
            forget(watcher, i);
    watcher->options.completed(watcher->options.context);
}

static void
note_followed(struct node_watcher *watcher)
{
    if (!watcher->is_followed)
        log_info(watcher->options.log, "following the nodes of the registry",
                 LOG_TEXT("registry", watcher->options.registry),
                 LOG_NUMBER("nodes", watcher->count));
    watcher->is_followed = true;
    watcher->trouble = CODE_OK;
}

static void
take_reply(struct node_watcher *watcher, const Skycap__V1__WatchReply *reply, struct arena *arena)
{
    switch (reply->what_case) {
    case SKYCAP__V1__WATCH_REPLY__WHAT_ENTRY:
        take_entry(watcher, reply->entry, arena);
        break;
    case SKYCAP__V1__WATCH_REPLY__WHAT_REMOVED:
        take_removal(watcher, reply->removed, arena);
        break;
    case SKYCAP__V1__WATCH_REPLY__WHAT_IS_ANEW:
        watcher->list++;
        break;
    case SKYCAP__V1__WATCH_REPLY__WHAT_IS_COMPLETE:
        end_list(watcher);
        note_followed(watcher);
        break;
    default:
        break;
    }
}

/* ---- one watch ---- */

/* Until the stream ends or fails. */
static struct error *
read_stream(struct node_watcher *watcher, struct client_call *stream)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, MESSAGE_BYTES);
        Skycap__V1__WatchReply *reply;
        struct error *error = client_call_recv(stream, &arena, &reply);
        if (error || !reply)
            return error;
        take_reply(watcher, reply, &arena);
    }
}

/* Never NULL: the registry ends no watch without a reason. */
static struct error *
watch(struct node_watcher *watcher)
{
    struct client_call *stream;
    Skycap__V1__WatchRequest request = SKYCAP__V1__WATCH_REQUEST__INIT;
    const struct call_options options = {.parent = call_as_parent(watcher->call)};
    request.path = (char *)PATH_NODES;
    watcher->list++;
    struct error *error =
        client_call_open(watcher->channel, SKYCAP_V1_REGISTRY_WATCH, &options, &stream);
    if (error)
        return error;
    /* If sending fails, the stream has ended and reports why. */
    error_free(client_call_send(stream, &request.base));
    client_call_close_send(stream);
    error = read_stream(watcher, stream);
    client_call_cancel(stream);
    struct error *end = client_call_finish(stream);
    client_call_free(stream);
    if (!error)
        return end ? end : error_new(CODE_UNAVAILABLE, "the registry has ended the watch");
    error_free(end);
    return error;
}

/* ---- lists, where no more clients may watch ---- */

/* `token`, of `size` bytes, becomes that of the next page. */
static struct error *
read_page(struct node_watcher *watcher, char *token, size_t size)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, PAGE_BYTES);
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *reply;
    const struct call_options options = {.timeout_ns = LONGEST_LIST_NS,
                                         .parent = call_as_parent(watcher->call)};
    request.path = (char *)PATH_NODES;
    request.starting_token = token;
    struct error *error = channel_call(watcher->channel, SKYCAP_V1_REGISTRY_LIST_ENTRIES,
                                       &request.base, &options, &arena, &reply);
    if (error)
        return error;
    for (size_t i = 0; i < reply->n_entries; i++)
        take_entry(watcher, reply->entries[i], &arena);
    snprintf(token, size, "%s", reply->next_token);
    return NULL;
}

static struct error *
list_nodes(struct node_watcher *watcher)
{
    char token[PATH_MAX_BYTES + 1] = "";
    struct error *error;
    watcher->list++;
    do
        error = read_page(watcher, token, sizeof token);
    while (!error && token[0]);
    if (!error)
        end_list(watcher);
    return error;
}

/* Never NULL. A registry that has too many watches is asked for a list, now and at each attempt. */
static struct error *
follow(struct node_watcher *watcher)
{
    struct error *error = watch(watcher);
    if (error->code != CODE_RESOURCE_EXHAUSTED || !error->from_peer)
        return error;
    struct error *list_error = list_nodes(watcher);
    if (!list_error)
        return error;
    error_free(error);
    return list_error;
}

/* ---- the thread ---- */

/* False: node_watcher_stop was called. */
static bool
rest(struct node_watcher *watcher, uint32_t pause_ms)
{
    struct timespec end = clock_after_ms(pause_ms);
    pthread_mutex_lock(&watcher->lock);
    while (!watcher->is_stopped &&
           pthread_cond_timedwait(&watcher->changed, &watcher->lock, &end) == 0)
        ;
    bool goes_on = !watcher->is_stopped;
    pthread_mutex_unlock(&watcher->lock);
    return goes_on;
}

static bool
is_stopped(struct node_watcher *watcher)
{
    pthread_mutex_lock(&watcher->lock);
    bool is_stopped = watcher->is_stopped;
    pthread_mutex_unlock(&watcher->lock);
    return is_stopped;
}

static void
log_trouble(struct node_watcher *watcher, const struct error *error)
{
    if (error->code != watcher->trouble)
        log_warn(watcher->options.log, "cannot follow the nodes of the registry; retrying",
                 LOG_TEXT("registry", watcher->options.registry),
                 LOG_TEXT("code", error_code_name(error->code)), LOG_TEXT("error", error->message));
    watcher->trouble = error->code;
}

static void
run(void *argument)
{
    struct node_watcher *watcher = argument;
    uint32_t pause_ms = FIRST_PAUSE_MS;
    for (bool goes_on = true; goes_on;) {
        struct error *error AUTO(error_cleanup) = follow(watcher);
        if (is_stopped(watcher))
            break;
        if (watcher->is_followed)
            pause_ms = FIRST_PAUSE_MS;
        log_trouble(watcher, error);
        watcher->is_followed = false;
        goes_on = rest(watcher, pause_ms);
        pause_ms = 2 * pause_ms < LONGEST_PAUSE_MS ? 2 * pause_ms : LONGEST_PAUSE_MS;
    }
    pthread_mutex_lock(&watcher->lock);
    watcher->is_running = false;
    pthread_cond_broadcast(&watcher->changed);
    pthread_mutex_unlock(&watcher->lock);
}

/* ---- life ---- */

struct error *
node_watcher_open(const struct node_watcher_options *options, struct node_watcher **out)
{
    struct node_watcher *watcher = memory_zeroed(sizeof *watcher);
    watcher->options = *options;
    /* The thread pauses between attempts, so the channel need not. */
    const struct channel_options channel = {.tls = options->tls,
                                            .tls_name = options->tls ? REGISTRY_NAME : NULL,
                                            .connect_timeout_ms = CONNECT_MS,
                                            .max_backoff_ms = FIRST_PAUSE_MS / 2,
                                            .keepalive_ms = PING_MS,
                                            .keepalive_timeout_ms = PING_ANSWER_MS};
    struct error *error =
        channel_open(options->runtime, options->registry, &channel, &watcher->channel);
    if (error) {
        free(watcher);
        return error_wrap(error, "the registry's address");
    }
    watcher->call = call_new_detached(options->runtime, 0);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&watcher->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&watcher->lock, NULL);
    *out = watcher;
    return NULL;
}

void
node_watcher_begin(struct node_watcher *watcher)
{
    watcher->is_running = true;
    runtime_spawn(watcher->options.runtime, run, watcher);
}

void
node_watcher_stop(struct node_watcher *watcher)
{
    pthread_mutex_lock(&watcher->lock);
    watcher->is_stopped = true;
    pthread_cond_broadcast(&watcher->changed);
    pthread_mutex_unlock(&watcher->lock);
    call_cancel_detached(watcher->call);
}

void
node_watcher_close(struct node_watcher *watcher)
{
    if (!watcher)
        return;
    node_watcher_stop(watcher);
    pthread_mutex_lock(&watcher->lock);
    while (watcher->is_running)
        pthread_cond_wait(&watcher->changed, &watcher->lock);
    pthread_mutex_unlock(&watcher->lock);
    channel_close(watcher->channel);
    call_free_detached(watcher->call);
    for (size_t i = 0; i < watcher->count; i++)
        free(watcher->known[i].id);
    free(watcher->known);
    pthread_cond_destroy(&watcher->changed);
    pthread_mutex_destroy(&watcher->lock);
    free(watcher);
}
