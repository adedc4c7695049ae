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
static struct error *(*real_list)(struct backend *, backend_found *, void *);
static atomic_bool is_held, fails;
static atomic_uint copies, copies_begun;

/* Copies stop where something has been made and not all of it, and data is listed only when so many have. */
static atomic_bool stops_inside;
static atomic_uint copies_inside, lists_after, lists;

static inline void
stop_inside(void *context, uint64_t done, uint64_t total)
{
    const struct progress *progress = context;
    progress->report(progress->context, done, total);
    atomic_fetch_add(&copies_inside, 1);
    while (atomic_load(&stops_inside))
        usleep(1000);
}

static inline bool
ask_outside(void *context)
{
    const struct progress *progress = context;
    return progress->cancelled(progress->context);
}

static inline struct error *
late_list(struct backend *backend, backend_found *found, void *context)
{
    while (atomic_load(&copies_inside) < atomic_load(&lists_after))
        usleep(1000);
    struct error *error = real_list(backend, found, context);
    atomic_fetch_add(&lists, 1);
    return error;
}

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
    struct progress inner = {stop_inside, ask_outside, (void *)progress};
    return real_copy(backend, from, to, settings, progress ? &inner : NULL);
}

/* From now on its copies wait, as long as is_held is true, which it is at first. */
static inline void
slow_down(struct backend *backend)
{
    atomic_store(&is_held, true);
    atomic_store(&fails, false);
    atomic_store(&copies, 0);
    atomic_store(&copies_begun, 0);
    atomic_store(&stops_inside, false);
    atomic_store(&copies_inside, 0);
    atomic_store(&lists_after, 0);
    atomic_store(&lists, 0);
    slow_ops = *backend->ops;
    real_copy = slow_ops.copy;
    real_list = slow_ops.list;
    slow_ops.copy = slow_copy;
    slow_ops.list = late_list;
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
