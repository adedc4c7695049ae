/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.Registry/Watch: sends all entries from the store, then changes from the feed.
 *
 * The feed is opened first, so no change is missed. Changes that are already in the list, by their
 * revision, are skipped.
 */
#include "base/clock.h"
#include "registry/client/path.h"
#include "registry/registry_internal.h"

/* How often to check whether the client has gone. */
#define LOOK_MS 1000

struct watcher {
    struct call *call;
    struct registry *registry;
    const char *path;
    struct store_watch *feed;
    uint64_t listed;   /* the revision up to which everything was sent */
    int64_t listed_ms; /* when the list was begun */
};

static struct error *
send_entry(const struct watcher *watcher, const struct entry *entry, bool is_expired)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Skycap__V1__RegistryEntry message;
    Skycap__V1__WatchReply reply = SKYCAP__V1__WATCH_REPLY__INIT;
    requests_fill_entry(&message, entry, is_expired, &arena);
    reply.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_ENTRY;
    reply.entry = &message;
    return call_send(watcher->call, &reply.base);
}

static struct error *
send_removed(const struct watcher *watcher, const char *path)
{
    Skycap__V1__WatchReply reply = SKYCAP__V1__WATCH_REPLY__INIT;
    reply.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_REMOVED;
    reply.removed = (char *)path;
    return call_send(watcher->call, &reply.base);
}

static struct error *
send_anew(const struct watcher *watcher)
{
    Skycap__V1__WatchReply reply = SKYCAP__V1__WATCH_REPLY__INIT;
    reply.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_IS_ANEW;
    reply.is_anew = true;
    return call_send(watcher->call, &reply.base);
}

static struct error *
send_complete(const struct watcher *watcher)
{
    Skycap__V1__WatchReply reply = SKYCAP__V1__WATCH_REPLY__INIT;
    reply.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_IS_COMPLETE;
    reply.is_complete = true;
    return call_send(watcher->call, &reply.base);
}

/*
 * What has expired is judged by the time before the list was read: a renewal that the list does not
 * show is later, so whoever notes it knows that the entry had expired, and it is published.
 */
static struct error *
send_listed(void *context, const struct entry *entry)
{
    const struct watcher *watcher = context;
    return send_entry(
        watcher, entry,
        controllers_is_expired(watcher->registry->controllers, entry, watcher->listed_ms));
}

static struct error *
send_all(struct watcher *watcher)
{
    struct store *store = watcher->registry->options.store;
    store_watch_close(STEAL(watcher->feed));
    struct error *error = feed_watch(&watcher->registry->feed, &watcher->feed);
    watcher->listed_ms = clock_unix_ms();
    if (!error)
        error = store_revision(store, &watcher->listed);
    if (!error)
        error = entries_walk(store, watcher->path, send_listed, watcher);
    return error ? error : send_complete(watcher);
}

static struct error *
begin_anew(struct watcher *watcher)
{
    struct error *error = send_anew(watcher);
    return error ? error : send_all(watcher);
}

static bool
is_listed(const struct watcher *watcher, const struct news *news)
{
    return news->kind != NEWS_EXPIRED && news->entry.revision <= watcher->listed;
}

/*
 * A change that has waited may be past its expiry by now, but the entry may have been renewed,
 * which is not published. What counts is whether it had expired when it was published.
 */
static struct error *
send_changed(const struct watcher *watcher, const struct news *news)
{
    return send_entry(watcher, &news->entry, news->kind == NEWS_EXPIRED);
}

static struct error *
send_news(struct watcher *watcher, const struct news *news)
{
    if (news->kind == NEWS_ANEW)
        return begin_anew(watcher);
    if (news->kind == NEWS_END || is_listed(watcher, news) ||
        !path_is_below(news->entry.path, watcher->path))
        return NULL;
    return news->kind == NEWS_REMOVED ? send_removed(watcher, news->entry.path)
                                      : send_changed(watcher, news);
}

static struct error *
send_next(struct watcher *watcher)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct news news;
    struct error *error = feed_next(watcher->feed, LOOK_MS, &arena, &news);
    if (!error)
        return send_news(watcher, &news);
    if (error->code != CODE_DEADLINE_EXCEEDED)
        return error;
    error_free(error);
    return NULL;
}

static struct error *
watch(struct watcher *watcher)
{
    struct error *error = send_all(watcher);
    while (!error && !call_is_cancelled(watcher->call)) {
        if (atomic_load(&watcher->registry->is_stopped))
            return error_new(CODE_UNAVAILABLE, "the registry is shutting down");
        error = send_next(watcher);
    }
    return error;
}

struct error *
registry_watch(struct call *call, const Skycap__V1__WatchRequest *request)
{
    struct watcher watcher = {.call = call, .registry = call_context(call)};
    struct error *error = path_normalize(request->path, call_arena(call), &watcher.path);
    if (!error)
        error = requests_check_reader(call, watcher.path);
    if (error)
        return error;
    atomic_fetch_add(&watcher.registry->watches, 1);
    error = watch(&watcher);
    atomic_fetch_sub(&watcher.registry->watches, 1);
    store_watch_close(watcher.feed);
    return error;
}
