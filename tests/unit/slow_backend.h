/* SPDX-License-Identifier: Apache-2.0 */
/* A back end that copies when the test says so. One at a time in a process. */
#ifndef UNIT_SLOW_BACKEND_H
#define UNIT_SLOW_BACKEND_H

#include <stdatomic.h>
#include <unistd.h>

#include "backends/backend.h"
#include "check.h"

static struct backend_ops slow_ops;
static struct error *(*real_copy)(struct backend *, const struct data *, const struct data *,
                                  const struct data_settings *, const struct progress *);
static atomic_bool is_held, fails;
static atomic_uint copies, copies_begun;

static inline struct error *
slow_copy(struct backend *backend, const struct data *from, const struct data *to,
          const struct data_settings *settings, const struct progress *progress)
{
    atomic_fetch_add(&copies_begun, 1);
    while (atomic_load(&is_held)) {
        progress->report(progress->context, 30, 100);
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "the copy was cancelled");
        usleep(1000);
    }
    if (atomic_load(&fails))
        return error_new(CODE_RESOURCE_EXHAUSTED, "no space left");
    atomic_fetch_add(&copies, 1);
    return real_copy(backend, from, to, settings, progress);
}

/* From now on its copies wait, as long as is_held is true, which it is at first. */
static inline void
slow_down(struct backend *backend)
{
    atomic_store(&is_held, true);
    atomic_store(&fails, false);
    atomic_store(&copies, 0);
    atomic_store(&copies_begun, 0);
    slow_ops = *backend->ops;
    real_copy = slow_ops.copy;
    slow_ops.copy = slow_copy;
    backend->ops = &slow_ops;
    CHECK(!backend->copies_are_instant);
}

static inline bool
wait_until_begun(unsigned count)
{
    for (int i = 0; i < 10000 && atomic_load(&copies_begun) < count; i++)
        usleep(1000);
    return atomic_load(&copies_begun) == count;
}

#endif
