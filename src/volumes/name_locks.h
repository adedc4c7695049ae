/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks by name. An exclusive lock keeps everybody else away from that volume or snapshot; a shared
 * lock keeps away only those who want an exclusive one. A second request gets ABORTED, as CSI
 * demands. Requests of the node service wait for a while first: there are often several for one
 * volume. Functions are safe from any thread.
 */
#ifndef VOLUMES_NAME_LOCKS_H
#define VOLUMES_NAME_LOCKS_H

#include <pthread.h>
#include <stdint.h>

#include "base/error.h"

struct name_lock;

struct name_locks {
    pthread_mutex_t mutex;
    pthread_cond_t released;
    struct name_lock *held;
    uint64_t releases; /* of exclusive locks */
};

void name_locks_init(struct name_locks *locks);
void name_locks_clear(struct name_locks *locks);

/*
 * Exclusive. The lock is identified by `kind` ("volume", "snapshot", "group", "drill") and name
 * together.
 */
MUST_CHECK struct error *name_lock_take(struct name_locks *locks, const char *kind,
                                        const char *name, struct name_lock **out);
MUST_CHECK struct error *name_lock_wait(struct name_locks *locks, const char *kind,
                                        const char *name, unsigned timeout_ms,
                                        struct name_lock **out);

/* Shared. ABORTED while somebody has it exclusive. */
MUST_CHECK struct error *name_lock_share(struct name_locks *locks, const char *kind,
                                         const char *name, struct name_lock **out);

/* NULL is fine. For `struct name_lock *lock AUTO(name_lock_release) = NULL`. */
void name_lock_release(struct name_lock **place);

/*
 * How many exclusive locks have been released. If the number is the same before a value is read and
 * after its lock is taken, nobody has changed the value in between.
 */
uint64_t name_locks_count_releases(struct name_locks *locks);

#endif
