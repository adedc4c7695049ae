/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes below the prefix, by anybody: one stream from one member, read by one thread that puts
 * them into the store's history.
 *
 * A stream that ends is opened again with the next member, from the revision after the last
 * complete one. If that has been compacted meanwhile, the history forgets, and watchers have to
 * list again. A member that has lost its leader ends the stream itself, because the stream asks for
 * that ("hasleader").
 *
 * A stream without changes is silent, and so is one from a member that hangs. The channel's pings
 * tell them apart only after 9 seconds, since etcd limits pings; so a second thread, the lookout,
 * sends that member a request every second, and ends the stream if there is no answer.
 */
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/etcd_internal.h"

#define PAUSE_MS 200 /* between streams */
#define LOOK_MS 1000 /* between two requests of the lookout */

/* ---- what the member tells ---- */

static void
publish_pending(struct etcd_watch *watch)
{
    history_publish(watch->history, &watch->pending);
    if (watch->told < watch->pending_revision)
        watch->told = watch->pending_revision;
}

static void
add_event(struct etcd_watch *watch, const Mvccpb__Event *event, struct arena *arena)
{
    const Mvccpb__KeyValue *entry = event->kv;
    const char *key = entry ? etcd_own_key(watch->client->place, entry->key, arena) : NULL;
    if (!key)
        return;
    if ((uint64_t)entry->mod_revision != watch->pending_revision)
        publish_pending(watch);
    watch->pending_revision = (uint64_t)entry->mod_revision;
    struct store_change change = {.key = key};
    if (event->type == MVCCPB__EVENT__EVENT_TYPE__PUT) {
        change.value = entry->value.data ? entry->value.data : (const uint8_t *)"";
        change.value_size = entry->value.len;
    }
    change_list_add(&watch->pending, &change, watch->pending_revision);
}

/*
 * Publishes the changes of one revision together, although they may be split over several answers.
 */
static void
take_events(struct etcd_watch *watch, const Etcdserverpb__WatchResponse *response,
            struct arena *arena)
{
    for (size_t i = 0; i < response->n_events; i++)
        add_event(watch, response->events[i], arena);
    if (!response->fragment)
        publish_pending(watch);
}

/* Logs once that all members have been asked in vain, and once that one answers again. */
static bool
is_cut_off(const struct etcd_watch *watch)
{
    return watch->failures >= watch->client->place->count;
}

static void
note_life(struct etcd_watch *watch, unsigned member)
{
    if (is_cut_off(watch)) {
        log_info(watch->log, "changes are heard of again",
                 LOG_TEXT("etcd", watch->client->place->members[member]));
        history_set_cut_off(watch->history, false);
    }
    watch->failures = 0;
}

static void
note_loss(struct etcd_watch *watch, unsigned member, const char *why)
{
    bool was_cut_off = is_cut_off(watch);
    watch->failures++;
    if (was_cut_off || !is_cut_off(watch))
        return;
    history_set_cut_off(watch->history, true);
    log_warn(watch->log, "changes are not heard of until a member of etcd tells them again",
             LOG_TEXT("etcd", watch->client->place->members[member]), LOG_TEXT("why", why));
}

static struct error *
take_cancel(struct etcd_watch *watch, const Etcdserverpb__WatchResponse *response)
{
    if (response->compact_revision <= 0)
        return error_new(CODE_UNAVAILABLE, "%s", response->cancel_reason);
    watch->told = (uint64_t)response->compact_revision;
    history_forget(watch->history, watch->told);
    return error_new(CODE_OUT_OF_RANGE, "changes up to revision %llu have been compacted",
                     (unsigned long long)watch->told);
}

/* A member that knows less than was already told is behind the others, or all of etcd is. */
static struct error *
check_age(struct etcd_watch *watch, const Etcdserverpb__WatchResponse *response)
{
    bool is_behind = response->header && (uint64_t)response->header->revision < watch->told;
    return is_behind || atomic_load(&watch->client->is_put_back)
               ? etcd_client_check_revision(watch->client)
               : NULL;
}

static struct error *
take_response(struct etcd_watch *watch, unsigned member,
              const Etcdserverpb__WatchResponse *response, struct arena *arena)
{
    struct error *error = etcd_client_check_cluster(watch->client, member, response->header);
    if (error)
        return error;
    if (response->canceled)
        return take_cancel(watch, response);
    error = response->created ? check_age(watch, response) : NULL;
    if (error)
        return error;
    etcd_client_note_revision(watch->client, response->header);
    note_life(watch, member);
    if (response->n_events)
        take_events(watch, response, arena);
    else if (!response->created && response->header &&
             watch->told < (uint64_t)response->header->revision)
        watch->told = (uint64_t)response->header->revision;
    return NULL;
}

/* ---- a stream ---- */

/* False: the thread has to end. From now on etcd_watch_stop can cancel the call. */
static bool
show_call(struct etcd_watch *watch, unsigned member, struct client_call *call)
{
    pthread_mutex_lock(&watch->lock);
    bool go_on = !watch->is_stopping;
    watch->call = go_on ? call : NULL;
    watch->member = member;
    watch->is_given_up = false;
    pthread_mutex_unlock(&watch->lock);
    return go_on;
}

/*
 * The call is about to be freed; nobody else uses it from now on. True: the lookout has ended it.
 */
static bool
hide_call(struct etcd_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->call = NULL;
    bool is_given_up = watch->is_given_up;
    pthread_mutex_unlock(&watch->lock);
    return is_given_up;
}

static struct error *
send_request(struct etcd_watch *watch, struct client_call *call)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 0);
    Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;
    create.key = etcd_key(watch->client->place, "", &arena);
    create.range_end = etcd_key_end(create.key, &arena);
    create.start_revision = (int64_t)watch->told + 1;
    create.progress_notify = true;
    create.fragment = true;
    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    request.create_request = &create;
    struct error *error = client_call_send(call, &request.base);
    arena_clear(&arena);
    return error;
}

/* Until the stream ends or fails. */
static struct error *
read_stream(struct etcd_watch *watch, unsigned member, struct client_call *call)
{
    struct error *error = NULL;
    for (bool is_open = true; is_open && !error;) {
        struct arena arena;
        Etcdserverpb__WatchResponse *response;
        arena_init(&arena, NULL, 0, ETCD_DECODED_BYTES);
        error = client_call_recv(call, &arena, &response);
        is_open = !error && response;
        if (is_open)
            error = take_response(watch, member, response, &arena);
        arena_clear(&arena);
    }
    return error;
}

static struct error *
read_changes(struct etcd_watch *watch, unsigned member, struct client_call *call)
{
    if (!show_call(watch, member, call))
        return error_new(CODE_CANCELLED, "it is to end");
    /* If sending fails, the stream has ended and reports why. */
    error_free(send_request(watch, call));
    struct error *error = read_stream(watch, member, call);
    if (!hide_call(watch))
        return error;
    error_free(error);
    return error_new(CODE_UNAVAILABLE, "the member does not answer any more");
}

static struct error *
follow(struct etcd_watch *watch, unsigned member)
{
    struct client_call *call;
    struct error *error =
        etcd_client_open_stream(watch->client, member, ETCDSERVERPB_WATCH_WATCH, &call);
    if (error)
        return error;
    error = read_changes(watch, member, call);
    client_call_cancel(call);
    struct error *end = client_call_finish(call);
    client_call_free(call);
    change_list_clear(&watch->pending);
    watch->pending_revision = watch->told;
    if (!error)
        return end ? end : error_new(CODE_UNAVAILABLE, "the stream has ended");
    error_free(end);
    return error;
}

/* ---- the two threads ---- */

/* False: the thread has to end. */
static bool
pause_unless_stopping(struct etcd_watch *watch, uint32_t ms)
{
    struct timespec until = clock_after_ms(ms);
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_stopping && !pthread_cond_timedwait(&watch->stopped, &watch->lock, &until))
        ;
    bool go_on = !watch->is_stopping;
    pthread_mutex_unlock(&watch->lock);
    return go_on;
}

static bool
is_stopping(struct etcd_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    bool result = watch->is_stopping;
    pthread_mutex_unlock(&watch->lock);
    return result;
}

static void *
follow_until_stopped(void *argument)
{
    struct etcd_watch *watch = argument;
    unsigned member = atomic_load(&watch->client->preferred);
    do {
        struct error *error AUTO(error_cleanup) = follow(watch, member);
        if (is_stopping(watch))
            break;
        if (error->code == CODE_OUT_OF_RANGE) {
            log_warn(watch->log, "changes were missed", LOG_TEXT("why", error->message));
            continue;
        }
        etcd_client_doubt_members(watch->client);
        note_loss(watch, member, error->message);
        member = (member + 1) % (unsigned)watch->client->place->count;
    } while (pause_unless_stopping(watch, PAUSE_MS));
    return NULL;
}

/* NULL: no stream is open. */
static struct client_call *
call_of(struct etcd_watch *watch, unsigned *member)
{
    pthread_mutex_lock(&watch->lock);
    struct client_call *call = watch->call;
    *member = watch->member;
    pthread_mutex_unlock(&watch->lock);
    return call;
}

/* Does nothing if the stream has been replaced meanwhile. */
static void
give_up(struct etcd_watch *watch, const struct client_call *call)
{
    pthread_mutex_lock(&watch->lock);
    if (watch->call == call) {
        watch->is_given_up = true;
        client_call_cancel(watch->call);
    }
    pthread_mutex_unlock(&watch->lock);
}

static void *
look_after_member(void *argument)
{
    struct etcd_watch *watch = argument;
    while (pause_unless_stopping(watch, LOOK_MS)) {
        unsigned member;
        const struct client_call *call = call_of(watch, &member);
        if (call && !etcd_client_is_alive(watch->client, member))
            give_up(watch, call);
    }
    return NULL;
}

static void
destroy_lock(struct etcd_watch *watch)
{
    pthread_cond_destroy(&watch->stopped);
    pthread_mutex_destroy(&watch->lock);
}

static void
end_reader(struct etcd_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->is_stopping = true;
    if (watch->call)
        client_call_cancel(watch->call);
    pthread_cond_broadcast(&watch->stopped);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->reader, NULL);
}

struct error *
etcd_watch_start(struct etcd_watch *watch, struct etcd_client *client, struct history *history,
                 uint64_t told, const struct log *log)
{
    *watch = (struct etcd_watch){.client = client, .history = history, .log = log, .told = told};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int failed = pthread_create(&watch->reader, NULL, follow_until_stopped, watch);
    if (!failed) {
        failed = pthread_create(&watch->lookout, NULL, look_after_member, watch);
        if (failed)
            end_reader(watch);
    }
    if (!failed)
        return NULL;
    destroy_lock(watch);
    return error_from_errno(failed, "start a thread");
}

void
etcd_watch_stop(struct etcd_watch *watch)
{
    end_reader(watch);
    pthread_join(watch->lookout, NULL);
    destroy_lock(watch);
}
