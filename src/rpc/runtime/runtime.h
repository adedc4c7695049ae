/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime that servers and channels share: a loop thread, a pool of workers, metrics. */
#ifndef RPC_RUNTIME_RUNTIME_H
#define RPC_RUNTIME_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "rpc/tls/tls.h"

struct runtime;

/* 0 selects the default given in the comment. */
struct runtime_options {
    const struct log *log;     /* must outlive the runtime */
    unsigned max_workers;      /* 256 handler threads, besides the loop's own */
    size_t max_queued_calls;   /* 4096 calls waiting for a worker */
    size_t max_buffered_bytes; /* 64 MiB of messages waiting in memory */
};

MUST_CHECK struct error *runtime_open(const struct runtime_options *options, struct runtime **out);

/*
 * Waits for the threads of runtime_spawn. All servers and channels must have been freed before, or
 * be freed by those threads.
 */
void runtime_close(struct runtime *runtime);

/* Any thread. Runs function(argument) on a thread of its own; it may block. */
void runtime_spawn(struct runtime *runtime, void (*function)(void *argument), void *argument);

/*
 * Runs function(argument) on the loop thread, now and every `interval_ms`, until runtime_close. It
 * must not block. It does not run while something else blocks the loop. Any thread but the loop's;
 * once.
 */
void runtime_start_heartbeat(struct runtime *runtime, uint32_t interval_ms,
                             void (*function)(void *argument), void *argument);

const struct log *runtime_log(const struct runtime *runtime);

/* Prints all metrics in Prometheus text format. Any thread but the loop's. */
void runtime_print_metrics(struct runtime *runtime, struct buffer *out);

/* Calls of one method since the start, as a server. */
struct runtime_method {
    const char *path; /* "/csi.v1.Identity/Probe" */
    uint64_t calls;
    uint64_t errors;
    uint64_t mean_ns;
    uint64_t half_ns; /* half of the calls took no longer */
    uint64_t most_ns; /* 99 of a hundred */
};

struct runtime_methods {
    struct runtime_method *items;
    size_t count;
};

/* All methods that were called; in the arena. Any thread but the loop's. */
struct runtime_methods runtime_list_methods(struct runtime *runtime, struct arena *arena);

/*
 * Runs tls_context_reload on the loop thread, which owns contexts in use. Any thread but the
 * loop's.
 */
MUST_CHECK struct error *runtime_reload_tls(struct runtime *runtime, struct tls_context *context,
                                            bool *changed);
/* tls_context_valid_until on the loop. Any other thread. */
int64_t runtime_tls_valid_until(struct runtime *runtime, const struct tls_context *context);

/* Runs tls_context_close on the loop thread. Any thread but the loop's. NULL is ignored. */
void runtime_close_tls(struct runtime *runtime, struct tls_context *context);

#endif
