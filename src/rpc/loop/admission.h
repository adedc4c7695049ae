/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: what clients may make the process hold, and who is refused when it would be too much. This is the only place that decides it.
 *
 * 1. WHO PAYS. All that a call makes the process hold is charged to the connection of the client that made it: its head, its
 *    messages as they came, inflated and decoded, its answer, and what the proxy and the relay hold for it. What the process does for
 *    itself is charged to an account of its own.
 * 2. THE SHARE. Of the bytes every connection is guaranteed a part, ADMISSION_CONNECTIONS of which are a quarter of all: whatever others do, it has room
 *    for two or three calls. Of the rest, which is shared, it may hold as much as it leaves free: one alone gets half, and n that take
 *    all they can at once get 1/(n+1) each. (A fixed share was rejected: four connections took everything. Only leaving free was rejected: one after
 *    the other, each takes half of what is left, and the thirteenth has no room for a call.)
 * 3. THE POOLS. Bytes in memory; threads of streaming handlers, which may hold them for ever and of which nothing is guaranteed, but the first to a connection
 *    without any while there is one; and the reserve.
 * 4. THE RESERVE. A call of a method that says whether the process lives (server_reserve_for) is charged to the reserve where the pool of bytes
 *    refuses it. So it is answered on a connection that is full of other calls, too.
 * 5. TIME. A request that takes one message has server_options.request_timeout_ms to come. What does not end holds nothing for ever.
 * 6. THE LOOP'S TIME. A connection that sends many requests is read little by little (conn.c). The loop inflates nothing, and decodes ADMISSION_LOOP_BYTES at most: a worker does the rest. One message is inflated at a
 *    time, so that one core at most is busy with it. Calls wait for that without a thread, and connections take turns.
 * 7. REFUSALS are RESOURCE_EXHAUSTED. They are logged once a second, all together. A connection that is refused and does not take its answers either is closed.
 */
#ifndef RPC_LOOP_ADMISSION_H
#define RPC_LOOP_ADMISSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a call takes beside its head, with its stream and where it is passed on to; a small decoded message is part of it. */
#define ADMISSION_CALL_BYTES 4096u
#define ADMISSION_LOOP_BYTES (64u << 10)
/* The most that servers allow by default. */
#define ADMISSION_CONNECTIONS 1024u

/* ---- pools and budgets: any thread ---- */

struct pool {
    atomic_size_t used; /* by those who hold more than they are guaranteed, beyond that */
    size_t limit;
    size_t guaranteed; /* to each account */
};

/* What one account holds of a pool. */
struct budget {
    atomic_size_t used;
    struct pool *pool;
    bool has_no_share; /* the process's own: it need not leave anything free */
};

static inline size_t
pool_excess(const struct pool *pool, size_t used)
{
    return used > pool->guaranteed ? used - pool->guaranteed : 0;
}

static inline void
budget_give_back(struct budget *budget, size_t size)
{
    struct pool *pool = budget->pool;
    size_t before = atomic_fetch_sub_explicit(&budget->used, size, memory_order_relaxed);
    size_t less = pool_excess(pool, before) - pool_excess(pool, before - size);
    if (less)
        atomic_fetch_sub_explicit(&pool->used, less, memory_order_relaxed);
}

/* False: it would be too much, and nothing was taken. */
static inline bool
budget_take(struct budget *budget, size_t size)
{
    struct pool *pool = budget->pool;
    size_t before = atomic_fetch_add_explicit(&budget->used, size, memory_order_relaxed);
    size_t mine = pool_excess(pool, before + size);
    size_t more = mine - pool_excess(pool, before);
    if (!more)
        return true;
    size_t all = atomic_fetch_add_explicit(&pool->used, more, memory_order_relaxed) + more;
    if (all <= pool->limit && (!before || budget->has_no_share || mine <= pool->limit - all))
        return true;
    budget_give_back(budget, size);
    return false;
}

/* ---- accounts: one for each connection, and the process's own ---- */

struct turn;

struct account {
    atomic_uint references; /* any thread */
    struct budget bytes;
    struct budget reserve;
    struct budget streams;
    /* Loop thread: those who wait for their turn. */
    struct turn *first_turn;
    struct turn **last_turn;
    struct account *next_in_line;
};

struct admission {
    struct pool bytes;
    struct pool reserve;
    struct pool streams;
    struct account *own;
    pthread_mutex_t inflating; /* held by the thread that inflates a message */
    /* Loop thread: the connections that wait for a turn, and whether somebody has it. */
    struct account *line;
    struct account **line_end;
    bool turn_is_taken;
    /* Loop thread: calls that were refused since somebody was told. */
    size_t refusals;
    uint64_t refusals_told_at;
};

/* `max_bytes`: of all connections together, what they are guaranteed included. */
void admission_init(struct admission *admission, size_t max_bytes, size_t max_streams);
void admission_clear(struct admission *admission);

/* Of a new connection, with one reference. */
struct account *account_new(struct admission *admission);
struct account *account_share(struct account *account);
void account_release(struct account *account);

/* ---- turns: loop thread ---- */

/* Somebody who waits to have a request inflated, or decoded if it is large. */
struct turn {
    struct turn *next;
    /* Now it is its turn, until admission_end_turn. False: it does not want it any more, and may be gone. */
    bool (*begin)(struct turn *turn);
};

/* Begins now, or later: connections take turns, and the turns of one come in their order. */
void admission_await_turn(struct admission *admission, struct account *account, struct turn *turn);
void admission_end_turn(struct admission *admission);

#endif
