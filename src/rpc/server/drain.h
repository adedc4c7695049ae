/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the calls of a server and lets a thread wait until none is left. */
#ifndef RPC_SERVER_DRAIN_H
#define RPC_SERVER_DRAIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drain {
    size_t calls;    /* not freed yet; loop thread */
    bool is_started; /* loop thread */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_ended; /* started and no call is left; protected by `lock` */
};

void drain_init(struct drain *drain);
void drain_clear(struct drain *drain);

/* ---- loop thread ---- */

void drain_add_call(struct drain *drain);
void drain_remove_call(struct drain *drain);
/* From now on, the drain has ended whenever there is no call. */
void drain_start(struct drain *drain);

/* ---- any other thread ---- */

/* Returns true if the drain has ended. UINT64_MAX: no timeout. */
bool drain_wait(struct drain *drain, uint64_t timeout_ns);

#endif
