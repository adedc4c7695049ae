/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the store: applies its changes to the controllers in memory and publishes them to the
 * feed. Runs on its own thread.
 *
 * While the store is unreachable, the known controllers stay in use, and the thread retries.
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

/* Reads everything, then follows. If the store is unreachable, the thread reads it later. */
MUST_CHECK struct error *follower_open(const struct follower_options *options,
                                       struct follower **out);

/* UNAVAILABLE: not everything has been read yet. Any thread; does not block. */
MUST_CHECK struct error *follower_check(struct follower *follower);

/* Ends the feed, and so all watches. Does not block. */
void follower_stop(struct follower *follower);

/* NULL is fine. */
void follower_close(struct follower *follower);

#endif
