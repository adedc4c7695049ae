/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key per name: whoever holds it works on that volume or snapshot alone. A second request is
 * told ABORTED, as CSI wants it; those of a node's side, of which several for one volume are usual,
 * wait a while first.
 */
#ifndef VOLUMES_KEYS_H
#define VOLUMES_KEYS_H

#include <pthread.h>

#include "base/error.h"

struct key;

struct keys {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct key *held;
};

void keys_init(struct keys *keys);
void keys_clear(struct keys *keys);

/* `kind` ("volume", "snapshot", "group") and name together are the key. */
MUST_CHECK struct error *keys_take(struct keys *keys, const char *kind, const char *name,
                                   struct key **out);
MUST_CHECK struct error *keys_wait(struct keys *keys, const char *kind, const char *name,
                                   unsigned timeout_ms, struct key **out);

/*
 * Together with others who share it; whoever wants it alone is told ABORTED, and so are these while
 * somebody has it alone.
 */
MUST_CHECK struct error *keys_share(struct keys *keys, const char *kind, const char *name,
                                    struct key **out);

/* Gives it back; NULL is fine. For `struct key *key AUTO(keys_release) = NULL`. */
void keys_release(struct key **key_place);

#endif
