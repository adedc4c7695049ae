/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the store: keeps the controllers in memory as the store has them, whoever writes there,
 * and tells the news. A thread of its own.
 *
 * While the store cannot be reached, what is known is used on, and the thread tries again, with
 * pauses.
 */
#ifndef REGISTRY_FOLLOWER_H
#define REGISTRY_FOLLOWER_H

#include "base/log.h"
#include "registry/controllers.h"
#include "registry/feed.h"

struct follower;

struct follower_options {
    struct store *store;
    struct controllers *controllers;
    struct feed *feed;
    const struct log *log;
};

/*
 * Reads everything, then follows. If the store cannot be reached yet, that is tried again, with
 * pauses, until everything has been read.
 */
MUST_CHECK struct error *follower_open(const struct follower_options *options,
                                       struct follower **out);

/*
 * NULL once everything has been read; until then UNAVAILABLE, and why. Any thread; does not wait.
 */
MUST_CHECK struct error *follower_check(struct follower *follower);

/* Ends the feed: those who watch go. Does not wait. */
void follower_stop(struct follower *follower);

/* NULL is fine. */
void follower_close(struct follower *follower);

#endif
