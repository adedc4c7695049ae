/* SPDX-License-Identifier: Apache-2.0 */
/* The engine under servers and channels: one loop thread, one pool of workers, one set of metrics. */
#ifndef RPC_RUNTIME_RUNTIME_H
#define RPC_RUNTIME_RUNTIME_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "rpc/tls/tls.h"

struct runtime;

/* Zero means the default that stands beside it. */
struct runtime_options {
    const struct log *log;     /* must outlive the runtime */
    unsigned max_workers;      /* 256 threads for handlers, beside the loop's own */
    size_t max_queued_calls;   /* 4096 calls that wait for a worker */
    size_t max_buffered_bytes; /* 64 MiB of messages that wait in memory */
};

MUST_CHECK struct error *runtime_open(const struct runtime_options *options, struct runtime **out);

/* Waits for what runtime_spawn has begun. Every server and channel must have been freed before, or is by that. */
void runtime_close(struct runtime *runtime);

/* Any thread: runs function(argument), which may block and take its time, on a thread of its own. */
void runtime_spawn(struct runtime *runtime, void (*function)(void *argument), void *argument);

const struct log *runtime_log(const struct runtime *runtime);

/* All metrics in Prometheus' text form. Any thread but the loop's. */
void runtime_print_metrics(struct runtime *runtime, struct buffer *out);

/* tls_context_reload on the thread that owns contexts in use. Any thread but the loop's. */
MUST_CHECK struct error *runtime_reload_tls(struct runtime *runtime, struct tls_context *context,
                                            bool *changed);

/* tls_context_close on that thread. Any thread but the loop's; NULL is fine. */
void runtime_close_tls(struct runtime *runtime, struct tls_context *context);

#endif
