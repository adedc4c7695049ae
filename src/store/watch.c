/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a store: see store.h and history.h.
 *
 * A ring of the latest changes under one lock, and in each watch the number of its next change. A
 * queue per watch was rejected: it costs each writer something for each watch, and a watch that
 * nobody reads would have to be bounded and cut off anyway. Here a slow watch costs nothing; it
 * notices by itself that its place in the ring is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/history.h"
#include "store/store_ops.h"

struct change {
    struct change *next; /* while it is in a list */
    uint64_t revision;
    size_t key_size;
    size_t value_size;
    bool is_delete;
    uint8_t bytes[]; /* the key, then the value */
};

struct store_watch {
    struct history *history;
    char *prefix;
    uint64_t next;  /* the number of the change to look at next */
    uint64_t since; /* changes up to this revision are skipped */
};

/* ---- changes ---- */

static size_t
size_of(const struct change *change)
{
    return sizeof *change + change->key_size + change->value_size;
}

void
change_list_add(struct change_list *list, const struct store_change *added, uint64_t revision)
{
    size_t key_size = strlen(added->key);
    size_t value_size = added->value ? added->value_size : 0;
    struct change *change = memory_new(sizeof *change + key_size + value_size);
    *change = (struct change){NULL, revision, key_size, value_size, !added->value};
    memcpy(change->bytes, added->key, key_size);
    if (value_size)
        memcpy(change->bytes + key_size, added->value, value_size);
    change_list_append(list, &(struct change_list){change, change});
}

void
change_list_append(struct change_list *list, struct change_list *more)
{
    if (!more->first)
        return;
    if (list->last)
        list->last->next = more->first;
    else
        list->first = more->first;
    list->last = more->last;
    *more = (struct change_list){0};
}

void
change_list_clear(struct change_list *list)
{
    while (list->first) {
        struct change *next = list->first->next;
        free(list->first);
        list->first = next;
    }
    list->last = NULL;
}

/* ---- the history ---- */

void
history_init(struct history *history, uint64_t revision)
{
    *history = (struct history){.forgotten = revision};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&history->lock, NULL);
    pthread_cond_init(&history->grew, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct change **
slot(struct history *history, uint64_t number)
{
    return &history->changes[number % HISTORY_CHANGES];
}

static void
forget_oldest(struct history *history)
{
    struct change *oldest = *slot(history, history->first++);
    history->bytes -= size_of(oldest);
    history->forgotten = oldest->revision;
    free(oldest);
}

void
history_clear(struct history *history)
{
    while (history->first < history->end)
        forget_oldest(history);
    pthread_cond_destroy(&history->grew);
    pthread_mutex_destroy(&history->lock);
}

/* The lock is held. */
static void
remember(struct history *history, struct change *change)
{
    size_t size = size_of(change);
    while (history->first < history->end && (history->end - history->first == HISTORY_CHANGES ||
                                             history->bytes + size > HISTORY_BYTES))
        forget_oldest(history);
    *slot(history, history->end++) = change;
    history->bytes += size;
}

void
history_publish(struct history *history, struct change_list *list)
{
    if (!list->first)
        return;
    pthread_mutex_lock(&history->lock);
    while (list->first) {
        struct change *next = list->first->next;
        remember(history, list->first);
        list->first = next;
    }
    list->last = NULL;
    pthread_cond_broadcast(&history->grew);
    pthread_mutex_unlock(&history->lock);
}

/* Skips a number, so that even a watch that has seen everything finds its place gone. */
void
history_forget(struct history *history, uint64_t revision)
{
    pthread_mutex_lock(&history->lock);
    while (history->first < history->end)
        forget_oldest(history);
    history->first = ++history->end;
    history->forgotten = revision;
    pthread_cond_broadcast(&history->grew);
    pthread_mutex_unlock(&history->lock);
}

void
history_set_cut_off(struct history *history, bool is_cut_off)
{
    pthread_mutex_lock(&history->lock);
    history->is_cut_off = is_cut_off;
    pthread_mutex_unlock(&history->lock);
}

/* ---- watches ---- */

static struct error *
too_long_ago(void)
{
    return error_new(CODE_OUT_OF_RANGE, "the changes since then are no longer known: list anew");
}

struct error *
history_watch(struct history *history, const char *prefix, uint64_t since, struct store_watch **out)
{
    *out = NULL;
    pthread_mutex_lock(&history->lock);
    bool is_known = since >= history->forgotten;
    uint64_t first = history->first;
    pthread_mutex_unlock(&history->lock);
    if (!is_known)
        return too_long_ago();
    struct store_watch *watch = memory_new(sizeof *watch);
    *watch = (struct store_watch){history, memory_string(prefix), first, since};
    *out = watch;
    return NULL;
}

void
store_watch_close(struct store_watch *watch)
{
    if (!watch)
        return;
    free(watch->prefix);
    free(watch);
}

static bool
concerns(const struct store_watch *watch, const struct change *change)
{
    size_t size = strlen(watch->prefix);
    return change->revision > watch->since && change->key_size >= size &&
           !memcmp(change->bytes, watch->prefix, size);
}

/* The next change for the watch, or NULL. The lock is held. */
static const struct change *
find_next(struct store_watch *watch)
{
    while (watch->next < watch->history->end) {
        const struct change *change = *slot(watch->history, watch->next++);
        if (concerns(watch, change))
            return change;
    }
    return NULL;
}

static struct store_entry
entry_of(const struct change *change, struct arena *arena)
{
    struct store_entry entry =
        store_copy_entry(arena, (const char *)change->bytes, change->key_size,
                         change->bytes + change->key_size, change->value_size, change->revision);
    if (change->is_delete)
        entry.value = NULL;
    return entry;
}

/* The lock is held. */
static struct error *
wait_for_next(struct store_watch *watch, uint32_t timeout_ms, struct arena *arena,
              struct store_entry *out)
{
    struct history *history = watch->history;
    struct timespec until = clock_after_ms(timeout_ms);
    bool is_over = false;
    for (;;) {
        if (watch->next < history->first)
            return too_long_ago();
        const struct change *change = find_next(watch);
        if (change) {
            *out = entry_of(change, arena);
            return NULL;
        }
        if (is_over && history->is_cut_off)
            return error_new(CODE_UNAVAILABLE, "changes are not heard of at the moment");
        if (is_over)
            return error_new(CODE_DEADLINE_EXCEEDED, "no change within %" PRIu32 " ms", timeout_ms);
        is_over = pthread_cond_timedwait(&history->grew, &history->lock, &until) == ETIMEDOUT;
    }
}

struct error *
store_watch_next(struct store_watch *watch, uint32_t timeout_ms, struct arena *arena,
                 struct store_entry *out)
{
    pthread_mutex_lock(&watch->history->lock);
    struct error *error = wait_for_next(watch, timeout_ms, arena, out);
    pthread_mutex_unlock(&watch->history->lock);
    return error;
}
