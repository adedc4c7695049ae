/* SPDX-License-Identifier: Apache-2.0 */
/*
 * News of entries, for those who watch: bounded, in memory, the same ring that stores keep their
 * changes in (store/history.h). Whoever reads too slowly holds nobody up; it is told to begin anew.
 */
#ifndef REGISTRY_FEED_H
#define REGISTRY_FEED_H

#include <stdatomic.h>

#include "registry/entries.h"
#include "store/history.h"

struct feed {
    struct history history;
    atomic_uint_fast64_t number; /* of the last news */
};

enum news_kind {
    NEWS_SET,     /* or renewed */
    NEWS_REMOVED, /* the entry has only its path */
    NEWS_EXPIRED,
    NEWS_ANEW, /* some news has been missed: list everything, and go on from there */
    NEWS_END,
};

struct news {
    enum news_kind kind;
    struct entry entry; /* of the first three */
};

void feed_init(struct feed *feed);
void feed_clear(struct feed *feed);

/* One thread at a time. */
void feed_publish(struct feed *feed, const struct news *news);

/* All news from now on. Closed by store_watch_close. */
MUST_CHECK struct error *feed_watch(struct feed *feed, struct store_watch **out);

/*
 * Waits for the next, at most so long: DEADLINE_EXCEEDED. It lives in the arena. One who is too
 * slow gets NEWS_ANEW, and must watch anew too.
 */
MUST_CHECK struct error *feed_next(struct store_watch *watch, uint32_t timeout_ms,
                                   struct arena *arena, struct news *out);

#endif
