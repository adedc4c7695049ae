/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: how much memory and how many threads clients may occupy, and which call is refused
 * when they want more. Nothing else decides this.
 *
 * 1. ACCOUNTS. Everything that a call occupies is charged to the connection of its client: its
 *    headers, its messages as received, inflated and decoded, its reply, what the proxy and the
 *    relay hold for it, and what its handler collects for the reply, beyond ADMISSION_WORK_BYTES.
 *    What the process does on its own behalf has an account of its own.
 * 2. SHARES. Each connection is guaranteed some bytes, enough for two or three calls whatever the
 *    others do. A quarter of all bytes is set aside for this, for ADMISSION_CONNECTIONS
 *    connections. The rest is shared. Of that, a connection may hold as much as it leaves free: one
 *    alone gets half, and n greedy ones get 1/(n+1) each. (Rejected: a fixed share, because four
 *    connections took everything; and this rule without a guarantee, because each newcomer gets
 *    half of what is left and the thirteenth has no room for a call.)
 * 3. POOLS. There are three: bytes of memory, threads for streaming handlers, and the reserve. A
 *    stream may hold its thread for ever, so none are guaranteed; but a connection without a stream
 *    gets one while there is a free thread.
 * 4. RESERVE. Calls that tell whether the process is alive (server_reserve_for) are charged to the
 *    reserve if the pool of bytes refuses them. They are answered even on a connection that is full
 *    of other calls.
 * 5. TIME. A request of one message must arrive within server_options.request_timeout_ms. So an
 *    unfinished request does not hold memory for ever.
 * 6. LOOP TIME. A connection that sends many requests is read in small portions (conn.c). The loop
 *    inflates nothing and decodes at most ADMISSION_LOOP_BYTES; workers do the rest. One message is
 *    inflated at a time, so at most one core is busy with it. Calls wait for their turn without a
 *    thread, and connections take turns.
 * 7. REFUSALS are RESOURCE_EXHAUSTED, logged as a total once a second. A connection that is refused
 *    and does not read its replies either is closed.
 */
#ifndef RPC_LOOP_ADMISSION_H
#define RPC_LOOP_ADMISSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Charged for each call besides its headers; covers a small message and the upstream stream. */
#define ADMISSION_CALL_BYTES 4096u
/* A handler on a worker may use so much without being charged. */
#define ADMISSION_WORK_BYTES (64u << 10)
#define ADMISSION_LOOP_BYTES (64u << 10)
/* The default limit of a server. */
#define ADMISSION_CONNECTIONS 1024u

/* ---- pools and budgets: any thread ---- */

struct pool {
    atomic_size_t used; /* total of what accounts hold beyond their guarantee */
    size_t limit;
    size_t guaranteed; /* to each account */
};

/* What one account holds of a pool. */
struct budget {
    atomic_size_t used;
    struct pool *pool;
    bool has_no_share; /* the process's own account: the share rule does not apply */
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

/* Returns false, and takes nothing, if that would exceed the limit or the share. */
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
    /* Loop thread: requests that wait for a turn. */
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
    /* Loop thread: accounts with requests that wait for a turn. */
    struct account *line;
    struct account **line_end;
    bool turn_is_taken;
    /* Loop thread: calls refused since the last log line about it. */
    size_t refusals;
    uint64_t refusals_told_at;
};

/* `max_bytes` is for all connections together, guarantees included. */
void admission_init(struct admission *admission, size_t max_bytes, size_t max_streams);
void admission_clear(struct admission *admission);

/* For a new connection; has one reference. */
struct account *account_new(struct admission *admission);
struct account *account_share(struct account *account);
void account_release(struct account *account);

/* ---- turns: loop thread ---- */

/* A request that waits to be inflated, or to be decoded if it is large. */
struct turn {
    struct turn *next;
    /*
     * Starts the turn, which lasts until admission_end_turn. Returns false if it is no longer
     * wanted; the request may have been freed.
     */
    bool (*begin)(struct turn *turn);
};

/* Starts the turn now or later. Connections take turns; requests of one connection keep order. */
void admission_await_turn(struct admission *admission, struct account *account, struct turn *turn);
void admission_end_turn(struct admission *admission);

#endif
