/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/runtime/runtime.c: a heartbeat comes from the loop, and not from a loop that hangs. */
#include "rpc_ends.h"

#define INTERVAL_MS 10

static void
beat(void *argument)
{
    gate_pass(argument);
}

int
main(void)
{
    static const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR};
    struct gate beats = GATE_INIT;
    struct runtime *runtime;
    struct hold hold;
    succeed(runtime_open(&(struct runtime_options){.log = &log}, &runtime));

    uint64_t start = timers_now();
    runtime_start_heartbeat(runtime, INTERVAL_MS, beat, &beats);
    CHECK_NUMBER(gate_count(&beats), 1);
    CHECK(gate_wait(&beats, 10));
    CHECK(ms_since(start) >= 9 * INTERVAL_MS);

    hold_loop(&hold, runtime);
    unsigned before = gate_count(&beats);
    sleep_ms(20 * INTERVAL_MS);
    CHECK_NUMBER(gate_count(&beats), before);
    release_loop(&hold);
    CHECK(gate_wait(&beats, before + 2));
    runtime_close(runtime);
    return check_report("heartbeat");
}
