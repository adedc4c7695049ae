/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of messages that wait in memory, over all connections: what peers can make the process hold is bounded. Any thread. */
#ifndef RPC_BUDGET_H
#define RPC_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    atomic_size_t used;
    size_t limit;
    struct budget *whole; /* of which this is a share; NULL: it is the whole */
};

static inline void
budget_give_back(struct budget *budget, size_t size)
{
    for (; size && budget; budget = budget->whole)
        atomic_fetch_sub_explicit(&budget->used, size, memory_order_relaxed);
}

/* False: it would be too much, and nothing was taken. */
static inline bool
budget_take(struct budget *budget, size_t size)
{
    bool fits = true;
    for (struct budget *b = budget; b; b = b->whole)
        fits &= atomic_fetch_add_explicit(&b->used, size, memory_order_relaxed) + size <= b->limit;
    if (!fits)
        budget_give_back(budget, size);
    return fits;
}

#endif
