/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the store: see follower.h.
 *
 * Renewals are not published: thousands of nodes renew all the time, and no watch needs to know.
 *
 * Expiry: forwarding compares times itself; only watches must be notified. So there is no heap of
 * expiry times. When the earliest has passed, but at most once per second, all controllers are
 * swept (1 ms for 100,000). The same sweep closes idle channels.
 */
#include "registry/follower.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

#define LOOK_MS 250         /* how late it may notice that it must stop */
#define SWEEP_MS 30000      /* even if nothing expires */
#define SWEEP_PAUSE_MS 1000 /* minimum between two sweeps */
#define IDLE_NS (UINT64_C(600) * 1000000000)
#define FIRST_PAUSE_MS 100u
#define LONGEST_PAUSE_MS 1000u
#define STACK_BYTES (256u * 1024)

struct follower {
    struct follower_options options;
    struct store_watch *watch; /* NULL: not open; it continues after `seen` */
    uint64_t seen;             /* all changes up to this revision are known */
    pthread_mutex_t lock;      /* for `trouble` */
    char *trouble;             /* why the entries have not been read yet; NULL: they have */
    int64_t swept_ms;
    int64_t next_expiry_ms;
    uint32_t pause_ms; /* after the next failure */
    enum code code;    /* of the last answer of the store */
    atomic_bool is_stopping;
    bool has_thread;
    pthread_t thread;
};

static void
publish(struct follower *follower, enum news_kind kind, const struct entry *entry)
{
    struct news news = {.kind = kind};
    if (entry)
        news.entry = *entry;
    feed_publish(follower->options.feed, &news);
}

/* ---- reading everything ---- */

static void
note_expiry(struct follower *follower, const struct entry *entry)
{
    if (entry->expires_ms && entry->expires_ms < follower->next_expiry_ms)
        follower->next_expiry_ms = entry->expires_ms;
}

static struct error *
note_row(void *context, const struct entry *entry)
{
    struct follower *follower = context;
    controllers_note_listed(follower->options.controllers, entry);
    note_expiry(follower, entry);
    return NULL;
}

static struct error *
read_all(struct follower *follower)
{
    uint64_t revision;
    controllers_begin_list(follower->options.controllers);
    struct error *error = store_revision(follower->options.store, &revision);
    if (!error)
        error = entries_walk(follower->options.store, "", note_row, follower);
    if (error)
        return error;
    controllers_end_list(follower->options.controllers, revision);
    follower->seen = revision;
    return NULL;
}

/* ---- following ---- */

static struct error *
open_watch(struct follower *follower)
{
    return store_watch_open(follower->options.store, ENTRIES_PREFIX, follower->seen,
                            &follower->watch);
}

/* After changes have been missed. */
static struct error *
read_again(struct follower *follower)
{
    struct error *error = read_all(follower);
    if (error)
        return error;
    publish(follower, NEWS_ANEW, NULL);
    return open_watch(follower);
}

static void
take_change(struct follower *follower, const struct store_entry *row, struct arena *arena)
{
    struct entry entry;
    follower->seen = row->revision;
    struct error *error AUTO(error_cleanup) = entries_read(row, arena, &entry);
    if (error) {
        log_error(follower->options.log, "registry", LOG_TEXT("error", error->message));
        return;
    }
    bool is_news = controllers_note_change(follower->options.controllers, &entry);
    note_expiry(follower, &entry);
    if (is_news)
        publish(follower, row->value ? NEWS_SET : NEWS_REMOVED, &entry);
}

/* Until the next sweep, at most LOOK_MS. */
static uint32_t
time_to_wait(const struct follower *follower)
{
    int64_t earliest_ms = follower->swept_ms + SWEEP_PAUSE_MS;
    int64_t sweep_ms =
        follower->next_expiry_ms > earliest_ms ? follower->next_expiry_ms : earliest_ms;
    int64_t left = follower->next_expiry_ms == INT64_MAX ? LOOK_MS : sweep_ms - clock_unix_ms();
    return left < 1 ? 1 : left < LOOK_MS ? (uint32_t)left : LOOK_MS;
}

static struct error *
take_next(struct follower *follower)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry row;
    struct error *error = store_watch_next(follower->watch, time_to_wait(follower), &arena, &row);
    if (!error)
        take_change(follower, &row, &arena);
    if (!error || error->code != CODE_DEADLINE_EXCEEDED)
        return error;
    error_free(error);
    return NULL;
}

static struct error *
follow(struct follower *follower)
{
    if (follower->trouble)
        return read_again(follower);
    struct error *error = follower->watch ? take_next(follower) : open_watch(follower);
    if (!error || error->code != CODE_OUT_OF_RANGE)
        return error;
    error_free(error);
    store_watch_close(STEAL(follower->watch));
    return read_again(follower);
}

/* ---- expiry ---- */

static void
publish_expired(void *context, const struct entry *entry)
{
    publish(context, NEWS_EXPIRED, entry);
}

static void
sweep_if_due(struct follower *follower)
{
    int64_t now_ms = clock_unix_ms();
    int64_t since = now_ms - follower->swept_ms;
    bool is_due = follower->next_expiry_ms <= now_ms || since >= SWEEP_MS || since < 0;
    if (!is_due || (since >= 0 && since < SWEEP_PAUSE_MS))
        return;
    struct controllers_sweep sweep = {now_ms, IDLE_NS, publish_expired, follower, 0};
    controllers_sweep(follower->options.controllers, &sweep);
    follower->next_expiry_ms = sweep.next_ms;
    follower->swept_ms = now_ms;
}

/* ---- the thread ---- */

/* Logs when the store is lost or found, and when the error code changes. */
static void
log_health(struct follower *follower, const struct error *error)
{
    enum code before = follower->code;
    follower->code = error ? error->code : CODE_OK;
    if (follower->code == before)
        return;
    if (error)
        log_warn(follower->options.log, "registry: cannot follow the store",
                 LOG_TEXT("error", error->message));
    else
        log_info(follower->options.log, "registry: following the store again");
}

static void
note_store(struct follower *follower, const struct error *error)
{
    if (error)
        controllers_store_lost(follower->options.controllers);
    else
        controllers_store_heard(follower->options.controllers);
}

/* Only this thread changes `trouble`. Once everything has been read, it stays NULL. */
static void
note_trouble(struct follower *follower, const struct error *error)
{
    if (!follower->trouble)
        return;
    pthread_mutex_lock(&follower->lock);
    free(follower->trouble);
    follower->trouble = error ? memory_string(error->message) : NULL;
    pthread_mutex_unlock(&follower->lock);
}

static void
pause_after_failure(struct follower *follower)
{
    for (uint32_t slept = 0; slept < follower->pause_ms && !atomic_load(&follower->is_stopping);
         slept += FIRST_PAUSE_MS) {
        struct timespec time = {.tv_nsec = (long)FIRST_PAUSE_MS * 1000000};
        nanosleep(&time, NULL);
    }
    follower->pause_ms *= 2;
    if (follower->pause_ms > LONGEST_PAUSE_MS)
        follower->pause_ms = LONGEST_PAUSE_MS;
}

static void *
run(void *argument)
{
    struct follower *follower = argument;
    while (!atomic_load(&follower->is_stopping)) {
        struct error *error AUTO(error_cleanup) = follow(follower);
        log_health(follower, error);
        note_store(follower, error);
        note_trouble(follower, error);
        sweep_if_due(follower);
        if (error) {
            store_watch_close(STEAL(follower->watch));
            pause_after_failure(follower);
        } else {
            follower->pause_ms = FIRST_PAUSE_MS;
        }
    }
    publish(follower, NEWS_END, NULL);
    return NULL;
}

static struct error *
start(struct follower *follower)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = pthread_create(&follower->thread, &attributes, run, follower);
    pthread_attr_destroy(&attributes);
    follower->has_thread = !failed;
    return failed ? error_from_errno(failed, "start the thread that follows the registry's store")
                  : NULL;
}

/* UNAVAILABLE is retried by the thread. */
static struct error *
read_first(struct follower *follower)
{
    struct error *error = read_all(follower);
    if (!error)
        note_store(follower, NULL);
    if (!error || error->code != CODE_UNAVAILABLE)
        return error;
    log_health(follower, error);
    follower->trouble = memory_string(error->message);
    error_free(error);
    return NULL;
}

struct error *
follower_open(const struct follower_options *options, struct follower **out)
{
    struct follower *follower = memory_zeroed(sizeof *follower);
    follower->options = *options;
    follower->next_expiry_ms = INT64_MAX;
    follower->pause_ms = FIRST_PAUSE_MS;
    pthread_mutex_init(&follower->lock, NULL);
    struct error *error = read_first(follower);
    if (!error)
        error = start(follower);
    if (error) {
        follower_close(follower);
        return error;
    }
    *out = follower;
    return NULL;
}

struct error *
follower_check(struct follower *follower)
{
    struct error *error = NULL;
    pthread_mutex_lock(&follower->lock);
    if (follower->trouble)
        error = error_new(CODE_UNAVAILABLE, "the registry has not read its entries yet: %s",
                          follower->trouble);
    pthread_mutex_unlock(&follower->lock);
    return error;
}

void
follower_stop(struct follower *follower)
{
    atomic_store(&follower->is_stopping, true);
}

void
follower_close(struct follower *follower)
{
    if (!follower)
        return;
    follower_stop(follower);
    if (follower->has_thread)
        pthread_join(follower->thread, NULL);
    store_watch_close(follower->watch);
    pthread_mutex_destroy(&follower->lock);
    free(follower->trouble);
    free(follower);
}
