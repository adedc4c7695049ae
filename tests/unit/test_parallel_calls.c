/* SPDX-License-Identifier: Apache-2.0 */
/* src/connections/router/parallel_calls.c: calls at the same time, with a limited number of threads. */
#include "connections/router/parallel_calls.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"
#include "rpc/runtime/runtime.h"

#define COUNT 200

static struct log quiet = {.fd = -1, .level = LOG_ERROR};
static atomic_int running, most;

static struct error *
ask(struct call *call, void *context)
{
    int now = ++running;
    int *answer = context;
    if (now > most)
        most = now;
    usleep(2000);
    running--;
    *answer += call_arena(call) != NULL;
    return *answer == 1 ? NULL : error_new(CODE_INTERNAL, "called twice");
}

int
main(void)
{
    struct runtime *runtime;
    struct parallel_call calls[COUNT];
    int answers[COUNT] = {0};
    CHECK(!runtime_open(&(struct runtime_options){.log = &quiet}, &runtime));
    struct call *call = call_new_detached(runtime, 0);
    for (int i = 0; i < COUNT; i++)
        calls[i] = (struct parallel_call){ask, &answers[i], NULL};
    parallel_calls_run(call, calls, COUNT, UINT64_C(10000000000));
    for (int i = 0; i < COUNT; i++) {
        CHECK(!calls[i].error);
        CHECK_NUMBER(answers[i], 1);
    }
    CHECK(most > 1);
    CHECK(most <= 32);
    parallel_calls_run(call, calls, 0, 1);
    call_free_detached(call);
    runtime_close(runtime);
    return check_report("parallel calls");
}
