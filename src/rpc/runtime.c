/* SPDX-License-Identifier: Apache-2.0 */
/* The engine under servers and channels: see runtime.h. */
#include "rpc/runtime.h"

#include <stdlib.h>

#include "base/memory.h"
#include "rpc/runtime_internal.h"

struct runtime {
    struct loop *loop;
    struct metrics metrics;
};

struct error *
runtime_open(const struct runtime_options *options, struct runtime **out)
{
    struct loop_options loop_options = {
        .log = options->log,
        .max_workers = options->max_workers ? options->max_workers : 256,
        .max_queued_calls = options->max_queued_calls ? options->max_queued_calls : 4096,
        .max_buffered_bytes =
            options->max_buffered_bytes ? options->max_buffered_bytes : (size_t)64 << 20,
    };
    struct runtime *runtime = memory_zeroed(sizeof *runtime);
    struct error *error = loop_open(&loop_options, &runtime->loop);
    if (error) {
        free(runtime);
        return error;
    }
    *out = runtime;
    return NULL;
}

void
runtime_close(struct runtime *runtime)
{
    if (!runtime)
        return;
    loop_close(runtime->loop);
    metrics_clear(&runtime->metrics);
    free(runtime);
}

struct loop *
runtime_loop(struct runtime *runtime)
{
    return runtime->loop;
}

struct metrics *
runtime_metrics(struct runtime *runtime)
{
    return &runtime->metrics;
}

const struct log *
runtime_log(const struct runtime *runtime)
{
    return runtime->loop->log;
}

struct print_metrics {
    const struct metrics *metrics;
    struct buffer *out;
};

static void
print_on_loop(void *argument)
{
    struct print_metrics *print = argument;
    metrics_print(print->metrics, print->out);
}

void
runtime_print_metrics(struct runtime *runtime, struct buffer *out)
{
    struct print_metrics print = {&runtime->metrics, out};
    loop_run(runtime->loop, print_on_loop, &print);
}

struct reload_tls {
    struct tls_context *context;
    bool *changed;
    struct error *error;
};

static void
reload_on_loop(void *argument)
{
    struct reload_tls *reload = argument;
    reload->error = tls_context_reload(reload->context, reload->changed);
}

struct error *
runtime_reload_tls(struct runtime *runtime, struct tls_context *context, bool *changed)
{
    struct reload_tls reload = {context, changed, NULL};
    loop_run(runtime->loop, reload_on_loop, &reload);
    return reload.error;
}
