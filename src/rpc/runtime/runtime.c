/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of servers and channels: see runtime.h. */
#include "rpc/runtime/runtime.h"
#include "rpc/runtime/process_metrics.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rpc/runtime/runtime_internal.h"

#define SPAWNED_STACK_BYTES (256u * 1024)
#define SPAWN_RETRY_NS (UINT64_C(10) * 1000 * 1000)

struct heartbeat {
    struct timer timer;
    uint64_t interval_ns;
    void (*function)(void *argument);
    void *argument;
};

struct runtime {
    struct loop *loop;
    struct metrics metrics;
    pthread_mutex_t lock;
    pthread_cond_t none_spawned;
    unsigned spawned; /* threads still running */
    struct heartbeat heartbeat;
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
    pthread_mutex_init(&runtime->lock, NULL);
    pthread_cond_init(&runtime->none_spawned, NULL);
    *out = runtime;
    return NULL;
}

void
runtime_close(struct runtime *runtime)
{
    if (!runtime)
        return;
    pthread_mutex_lock(&runtime->lock);
    while (runtime->spawned)
        pthread_cond_wait(&runtime->none_spawned, &runtime->lock);
    pthread_mutex_unlock(&runtime->lock);
    loop_close(runtime->loop);
    metrics_clear(&runtime->metrics);
    pthread_cond_destroy(&runtime->none_spawned);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime);
}

struct spawned {
    struct runtime *runtime;
    void (*function)(void *argument);
    void *argument;
    struct task task;
    struct timer retry;
};

static void *
run_spawned(void *argument)
{
    struct spawned spawned = *(struct spawned *)argument;
    free(argument);
    spawned.function(spawned.argument);
    pthread_mutex_lock(&spawned.runtime->lock);
    if (!--spawned.runtime->spawned)
        pthread_cond_signal(&spawned.runtime->none_spawned);
    pthread_mutex_unlock(&spawned.runtime->lock);
    return NULL;
}

static bool
start_spawned(struct spawned *spawned)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, SPAWNED_STACK_BYTES);
    bool started = pthread_create(&thread, &detached, run_spawned, spawned) == 0;
    pthread_attr_destroy(&detached);
    return started;
}

/* No thread available (EAGAIN): retry until there is one. */
static void
retry_spawned(struct timer *timer)
{
    struct spawned *spawned = CONTAINER_OF(timer, struct spawned, retry);
    struct loop *loop = spawned->runtime->loop;
    if (!start_spawned(spawned))
        loop_arm(loop, &spawned->retry, timers_now() + SPAWN_RETRY_NS);
}

static void
retry_by_task(struct task *task)
{
    retry_spawned(&CONTAINER_OF(task, struct spawned, task)->retry);
}

void
runtime_spawn(struct runtime *runtime, void (*function)(void *argument), void *argument)
{
    struct spawned *spawned = memory_new(sizeof *spawned);
    *spawned = (struct spawned){.runtime = runtime,
                                .function = function,
                                .argument = argument,
                                .task.run = retry_by_task,
                                .retry.fire = retry_spawned};
    pthread_mutex_lock(&runtime->lock);
    runtime->spawned++;
    pthread_mutex_unlock(&runtime->lock);
    if (!start_spawned(spawned))
        loop_post(runtime->loop, &spawned->task);
}

static void
beat(struct timer *timer)
{
    struct runtime *runtime = CONTAINER_OF(timer, struct runtime, heartbeat.timer);
    struct heartbeat *heartbeat = &runtime->heartbeat;
    heartbeat->function(heartbeat->argument);
    loop_arm(runtime->loop, timer, timers_now() + heartbeat->interval_ns);
}

static void
start_on_loop(void *argument)
{
    beat(argument);
}

void
runtime_start_heartbeat(struct runtime *runtime, uint32_t interval_ms,
                        void (*function)(void *argument), void *argument)
{
    runtime->heartbeat = (struct heartbeat){
        .timer.fire = beat,
        .interval_ns = (uint64_t)interval_ms * 1000000,
        .function = function,
        .argument = argument,
    };
    loop_run(runtime->loop, start_on_loop, &runtime->heartbeat.timer);
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
    process_metrics_print(out);
}

struct list_methods {
    const struct metrics *metrics;
    struct arena *arena;
    struct runtime_methods out;
};

static struct runtime_method
sum_method(const struct method_metrics *method, struct arena *arena)
{
    struct runtime_method sum = {.path = arena_string(arena, method->path)};
    uint64_t nanoseconds = 0;
    for (int code = 0; code < CODE_COUNT; code++) {
        sum.calls += method->codes[code];
        nanoseconds += method->nanoseconds[code];
    }
    sum.errors = sum.calls - method->codes[CODE_OK];
    sum.mean_ns = sum.calls ? nanoseconds / sum.calls : 0;
    sum.half_ns = metrics_quantile(method, 0.5);
    sum.most_ns = metrics_quantile(method, 0.99);
    return sum;
}

static void
list_on_loop(void *argument)
{
    struct list_methods *list = argument;
    size_t count = 0;
    for (const struct method_metrics *m = list->metrics->methods; m; m = m->next)
        count++;
    list->out.items = arena_alloc(list->arena, count * sizeof *list->out.items);
    for (const struct method_metrics *m = list->metrics->methods; m; m = m->next)
        list->out.items[list->out.count++] = sum_method(m, list->arena);
}

struct runtime_methods
runtime_list_methods(struct runtime *runtime, struct arena *arena)
{
    struct list_methods list = {&runtime->metrics, arena, {0}};
    loop_run(runtime->loop, list_on_loop, &list);
    return list.out;
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

struct read_validity {
    const struct tls_context *context;
    int64_t until;
};

static void
read_validity_on_loop(void *argument)
{
    struct read_validity *read = argument;
    read->until = tls_context_valid_until(read->context);
}

int64_t
runtime_tls_valid_until(struct runtime *runtime, const struct tls_context *context)
{
    struct read_validity read = {context, 0};
    loop_run(runtime->loop, read_validity_on_loop, &read);
    return read.until;
}

static void
close_tls_on_loop(void *argument)
{
    tls_context_close(argument);
}

void
runtime_close_tls(struct runtime *runtime, struct tls_context *context)
{
    if (context)
        loop_run(runtime->loop, close_tls_on_loop, context);
}
