/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of entries, for watches: a bounded ring in memory, the same that stores use
 * (store/history.h). A slow reader does not block others; it has to start again with a list.
 */
#ifndef REGISTRY_FEED_H
#define REGISTRY_FEED_H

#include <stdatomic.h>

#include "registry/entries.h"
#include "store/history.h"

struct feed {
    struct history history;
    atomic_uint_fast64_t number; /* of the last change, which may not be in the history yet */
};

enum news_kind {
    NEWS_SET,     /* or renewed after it had expired */
    NEWS_REMOVED, /* the entry has only a path */
    NEWS_EXPIRED,
    NEWS_ANEW, /* changes have been missed: list everything, and watch again */
    NEWS_END,
};

struct news {
    enum news_kind kind;
    struct entry entry; /* for the first three kinds */
};

void feed_init(struct feed *feed);
void feed_clear(struct feed *feed);

/* One thread at a time. */
void feed_publish(struct feed *feed, const struct news *news);

/*
 * Watches all changes from now on. Not told is what is being published at this moment: a list that
 * is read afterwards shows it. Closed by store_watch_close.
 */
MUST_CHECK struct error *feed_watch(struct feed *feed, struct store_watch **out);

/*
 * Waits for the next change, which lives in the arena. DEADLINE_EXCEEDED: there was none. A reader
 * that is too slow gets NEWS_ANEW, and must call feed_watch again.
 */
MUST_CHECK struct error *feed_next(struct store_watch *watch, uint32_t timeout_ms,
                                   struct arena *arena, struct news *out);

#endif
