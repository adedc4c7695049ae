/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks by name. Whoever has a key exclusive works on that volume or snapshot alone; a shared key
 * excludes only those who want it exclusive. A second request is told ABORTED, as CSI wants it.
 * Requests of the node service, of which several for one volume are usual, wait a while first.
 * Functions are safe from any thread.
 */
#ifndef VOLUMES_KEYS_H
#define VOLUMES_KEYS_H

#include <pthread.h>
#include <stdint.h>

#include "base/error.h"

struct key;

struct keys {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct key *held;
    uint64_t releases; /* of exclusive keys */
};

void keys_init(struct keys *keys);
void keys_clear(struct keys *keys);

/* Exclusive. `kind` ("volume", "snapshot", "group") and name together are the key. */
MUST_CHECK struct error *keys_take(struct keys *keys, const char *kind, const char *name,
                                   struct key **out);
MUST_CHECK struct error *keys_wait(struct keys *keys, const char *kind, const char *name,
                                   unsigned timeout_ms, struct key **out);

/* Shared. ABORTED while somebody has it exclusive. */
MUST_CHECK struct error *keys_share(struct keys *keys, const char *kind, const char *name,
                                    struct key **out);

/* Gives it back; NULL is fine. For `struct key *key AUTO(keys_release) = NULL`. */
void keys_release(struct key **key_place);

/*
 * How many exclusive keys were given back so far. Who reads something, takes its key, and finds the
 * same number as before the reading knows that nobody has changed it in between.
 */
uint64_t keys_count_releases(struct keys *keys);

#endif
