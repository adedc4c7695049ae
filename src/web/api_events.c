/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of the page: server-sent events. Two threads serve all streams, and only while there is
 * one: the follower watches the operations, the poller looks for changes of everything else and
 * tells the streams. Both never run without a stream.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/export.h"
#include "web/api_internal.h"
#include "web/api_look.h"
#include "web/operation_table.h"

#define TICK_MS 500
#define PING_MS 5000
#define RETRY_MS 1000
#define FIRST_LOOK_MS 5000

/* One stream, on the stack of its thread. */
struct subscriber {
    struct subscriber *next;
    int wake_fd;
    uint64_t operations; /* the versions that it has sent */
    uint64_t topics[API_TOPICS];
};

struct api_events {
    struct api *api;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* subscribers, is_stopping, threads */
    bool is_stopping;
    bool has_started;  /* the poller */
    bool has_follower; /* where there are operations */
    unsigned threads;
    bool has_looked; /* the poller knows how everything was; later changes are told */
    struct subscriber *subscribers;
    struct client_call *watch; /* of the follower, to be cancelled */
    struct operation_table *table;
    struct buffer operations; /* the newest event's data */
    uint64_t operations_version;
    uint64_t topics[API_TOPICS]; /* versions */
};

/* ---- with the lock held ---- */

static void
wake_all(struct api_events *events)
{
    uint64_t one = 1;
    for (struct subscriber *at = events->subscribers; at; at = at->next) {
        ssize_t ignored = write(at->wake_fd, &one, sizeof one);
        (void)ignored;
    }
}

static bool
must_follow(const struct api_events *events)
{
    return events->subscribers && !events->is_stopping;
}

/* False: the API ends. */
static bool
wait_for_subscribers(struct api_events *events)
{
    while (!events->subscribers && !events->is_stopping)
        pthread_cond_wait(&events->changed, &events->lock);
    return !events->is_stopping;
}

static void
pause_ms(struct api_events *events, uint64_t ms)
{
    struct timespec until = clock_after_ms(ms);
    if (!events->is_stopping)
        pthread_cond_timedwait(&events->changed, &events->lock, &until);
}

/* ---- the follower: operations ---- */

static struct error *
open_watch(struct api_events *events, struct client_call **out)
{
    Skycap__V1__WatchOperationsRequest asked = SKYCAP__V1__WATCH_OPERATIONS_REQUEST__INIT;
    struct call_options options = {.wait_for_ready = true};
    struct error *error = client_call_open(
        events->api->channel, service_find_method("skycap.v1.Operations/Watch"), &options, out);
    if (error)
        return error;
    error_free(client_call_send(*out, &asked.base)); /* receiving says why */
    client_call_close_send(*out);
    return NULL;
}

/* An export that has ended changes its repository. */
static void
tell_of_export(struct api_events *events, const Skycap__V1__Operation *operation)
{
    if (operation->state == SKYCAP__V1__OPERATION__STATE__RUNNING ||
        strcmp(operation->kind, EXPORT_SNAPSHOT) != 0)
        return;
    pthread_mutex_lock(&events->lock);
    events->topics[TOPIC_REPOSITORIES]++;
    wake_all(events);
    pthread_mutex_unlock(&events->lock);
}

static void
take_operations(struct api_events *events, struct client_call *call)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        Skycap__V1__Operation *operation;
        struct error *error AUTO(error_cleanup) = client_call_recv(call, &arena, &operation);
        if (error || !operation)
            return;
        struct api_subject subject;
        if (!operation_table_find(events->table, operation->id, &arena, &subject))
            subject = api_find_subject(events->api, &arena, operation->subject);
        operation_table_put(events->table, operation, &subject);
        tell_of_export(events, operation);
    }
}

/* Without the lock. */
static void
watch_operations(struct api_events *events)
{
    struct client_call *call;
    struct error *error AUTO(error_cleanup) = open_watch(events, &call);
    if (error)
        return;
    operation_table_forget_running(events->table);
    pthread_mutex_lock(&events->lock);
    bool goes_on = must_follow(events);
    events->watch = call;
    pthread_mutex_unlock(&events->lock);
    if (goes_on)
        take_operations(events, call);
    pthread_mutex_lock(&events->lock);
    events->watch = NULL;
    pthread_mutex_unlock(&events->lock);
    client_call_free(call);
}

static void
end_thread(struct api_events *events)
{
    events->threads--;
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->lock);
}

static void
run_follower(void *argument)
{
    struct api_events *events = argument;
    pthread_mutex_lock(&events->lock);
    while (wait_for_subscribers(events)) {
        pthread_mutex_unlock(&events->lock);
        watch_operations(events);
        pthread_mutex_lock(&events->lock);
        pause_ms(events, must_follow(events) ? RETRY_MS : 0);
    }
    end_thread(events);
}

/* ---- the poller: everything else ---- */

static void
publish_operations(struct api_events *events)
{
    struct buffer text = {0};
    operation_table_print(events->table, &text);
    pthread_mutex_lock(&events->lock);
    buffer_clear(&events->operations);
    events->operations = text;
    events->operations_version++;
    wake_all(events);
    pthread_mutex_unlock(&events->lock);
}

static void
look_for_changes(struct api_events *events, struct api_look *look)
{
    bool is_changed[API_TOPICS] = {false}, is_any = false;
    api_look_again(look, is_changed);
    pthread_mutex_lock(&events->lock);
    for (size_t i = 0; i < API_TOPICS; i++) {
        events->topics[i] += is_changed[i];
        is_any |= is_changed[i];
    }
    if (is_any)
        wake_all(events);
    events->has_looked = true;
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->lock);
}

static void
poll_while_needed(struct api_events *events)
{
    struct api_look look;
    api_look_init(&look, events->api);
    bool goes_on = true;
    for (unsigned tick = 0; goes_on; tick++) {
        if (operation_table_has_changed(events->table))
            publish_operations(events);
        if (tick % 2 == 0)
            look_for_changes(events, &look);
        pthread_mutex_lock(&events->lock);
        if (must_follow(events))
            pause_ms(events, TICK_MS);
        goes_on = must_follow(events);
        events->has_looked &= goes_on;
        pthread_mutex_unlock(&events->lock);
    }
    api_look_clear(&look);
}

static void
run_poller(void *argument)
{
    struct api_events *events = argument;
    pthread_mutex_lock(&events->lock);
    while (wait_for_subscribers(events)) {
        pthread_mutex_unlock(&events->lock);
        poll_while_needed(events);
        pthread_mutex_lock(&events->lock);
    }
    end_thread(events);
}

/* ---- a stream ---- */

/*
 * Whoever reads the state after the first event misses nothing: what changes from then on is told.
 * With the lock held.
 */
static void
wait_for_look(struct api_events *events)
{
    struct timespec until = clock_after_ms(FIRST_LOOK_MS);
    int result = 0;
    while (!events->has_looked && !events->is_stopping && result == 0)
        result = pthread_cond_timedwait(&events->changed, &events->lock, &until);
}

/* False: the API ends. */
static bool
subscribe(struct api_events *events, struct subscriber *subscriber)
{
    pthread_mutex_lock(&events->lock);
    bool goes_on = !events->is_stopping;
    if (goes_on) {
        subscriber->next = events->subscribers;
        events->subscribers = subscriber;
        memcpy(subscriber->topics, events->topics, sizeof subscriber->topics);
        pthread_cond_broadcast(&events->changed);
    }
    if (goes_on && !events->has_started) {
        events->has_started = true;
        events->threads = 1;
        runtime_spawn(events->api->options.runtime, run_poller, events);
    }
    if (goes_on && !events->has_follower && events->api->options.has_storage) {
        events->has_follower = true;
        events->threads++;
        runtime_spawn(events->api->options.runtime, run_follower, events);
    }
    wait_for_look(events);
    pthread_mutex_unlock(&events->lock);
    return goes_on;
}

static void
unsubscribe(struct api_events *events, struct subscriber *subscriber)
{
    pthread_mutex_lock(&events->lock);
    struct subscriber **place = &events->subscribers;
    while (*place != subscriber)
        place = &(*place)->next;
    *place = subscriber->next;
    if (!events->subscribers && events->watch)
        client_call_cancel(events->watch);
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->lock);
}

static void
print_topics(const uint64_t *seen, const uint64_t *now, struct buffer *out)
{
    struct json_writer writer = {out, false};
    if (memcmp(seen, now, API_TOPICS * sizeof *seen) == 0)
        return;
    buffer_append_text(out, "event: changed\ndata: {\"what\":");
    json_writer_begin(&writer, NULL, '[');
    for (size_t i = 0; i < API_TOPICS; i++)
        if (seen[i] != now[i])
            json_writer_text(&writer, NULL, api_look_topics[i]);
    json_writer_end(&writer, ']');
    buffer_append_text(out, "}\n\n");
}

/* What is new for the subscriber. False: the API ends. */
static bool
collect(struct api_events *events, struct subscriber *subscriber, struct buffer *out)
{
    pthread_mutex_lock(&events->lock);
    if (subscriber->operations != events->operations_version) {
        buffer_append_text(out, "event: operations\ndata: ");
        buffer_append(out, events->operations.bytes, events->operations.size);
        buffer_append_text(out, "\n\n");
    }
    print_topics(subscriber->topics, events->topics, out);
    subscriber->operations = events->operations_version;
    memcpy(subscriber->topics, events->topics, sizeof subscriber->topics);
    bool goes_on = !events->is_stopping;
    pthread_mutex_unlock(&events->lock);
    return goes_on;
}

static void
empty_wake(int fd)
{
    uint64_t count;
    ssize_t ignored = read(fd, &count, sizeof count);
    (void)ignored;
}

static void
send_events(struct api_events *events, struct subscriber *subscriber, struct http_stream *stream)
{
    uint64_t ping_ms = 0;
    for (bool goes_on = true; goes_on;) {
        struct buffer out AUTO(buffer_clear) = {0};
        empty_wake(subscriber->wake_fd);
        goes_on = collect(events, subscriber, &out);
        uint64_t now_ms = clock_now_ms();
        if (now_ms >= ping_ms) {
            buffer_print(&out, "event: ping\ndata: {\"timeMs\":%lld}\n\n",
                         (long long)clock_unix_ms());
            ping_ms = now_ms + PING_MS;
        }
        goes_on = goes_on && (!out.size || http_stream_send(stream, out.bytes, out.size)) &&
                  http_stream_wait(stream, subscriber->wake_fd, (int)(ping_ms - now_ms));
    }
}

static void
stream_events(void *context, struct http_stream *stream)
{
    struct api_events *events = context;
    struct subscriber subscriber = {.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (subscriber.wake_fd < 0)
        return;
    if (subscribe(events, &subscriber)) {
        send_events(events, &subscriber, stream);
        unsubscribe(events, &subscriber);
    }
    close(subscriber.wake_fd);
}

void
api_events_serve(struct api_events *events, struct http_answer *answer)
{
    answer->content_type = "text/event-stream; charset=utf-8";
    answer->stream = stream_events;
    answer->stream_context = events;
}

/* ---- life ---- */

struct api_events *
api_events_new(struct api *api)
{
    struct api_events *events = memory_zeroed(sizeof *events);
    events->api = api;
    events->table = operation_table_new();
    events->operations_version = 1;
    buffer_append_text(&events->operations, "{\"operations\":[]}");
    pthread_mutex_init(&events->lock, NULL);
    clock_init_condition(&events->changed);
    return events;
}

void
api_events_stop(struct api_events *events)
{
    pthread_mutex_lock(&events->lock);
    events->is_stopping = true;
    if (events->watch)
        client_call_cancel(events->watch);
    wake_all(events);
    pthread_cond_broadcast(&events->changed);
    while (events->threads || events->subscribers)
        pthread_cond_wait(&events->changed, &events->lock);
    pthread_mutex_unlock(&events->lock);
}

void
api_events_free(struct api_events *events)
{
    operation_table_free(events->table);
    buffer_clear(&events->operations);
    pthread_cond_destroy(&events->changed);
    pthread_mutex_destroy(&events->lock);
    free(events);
}
