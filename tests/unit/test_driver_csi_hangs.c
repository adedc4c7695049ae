/* SPDX-License-Identifier: Apache-2.0 */
/* Driver `csi` before a child that does not answer: calls are bounded in number and time, and it is left alone until it answers again. */
#include "driver_csi_ends.h"

struct caller {
    pthread_t thread;
    struct front *front;
    enum code code;
};

static void *
run_caller(void *argument)
{
    struct caller *caller = argument;
    caller->code = take_code(create(caller->front, "one", NULL, NULL));
    return NULL;
}

static void
more_calls_than_may_be_are_refused_at_once(void)
{
    struct child child;
    struct front front;
    struct caller callers[2];
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = calm_settings(&front, &child),
                                             .max_calls = COUNT_OF(callers)});
    CHECK(wait_for_facts(front.driver, true, NULL));
    atomic_store(&child.hangs, true);
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        callers[i].front = &front;
        pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]);
    }
    CHECK(gate_wait(&child.entered, COUNT_OF(callers)));
    uint64_t start = timers_now();
    struct error *error = create(&front, "one", NULL, NULL);
    CHECK(ms_since(start) < 500);
    CHECK(error && strstr(error->message, "connection \"slow\": 2 calls are in progress"));
    CHECK_CODE(error, CODE_RESOURCE_EXHAUSTED);
    gate_pass(&child.may_go);
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK_NUMBER(callers[i].code, CODE_OK);
    }
    atomic_store(&child.hangs, false);
    CHECK_CODE(create(&front, "one", NULL, NULL), CODE_OK); /* the places are free again */
    close_both(&front, &child);
}

static void
a_call_takes_no_longer_than_it_may(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    front_open(&front,
               &(struct front_setup){.settings = calm_settings(&front, &child), .timeout_ms = 100});
    CHECK(wait_for_facts(front.driver, true, NULL));
    atomic_store(&child.hangs, true);
    uint64_t start = timers_now();
    CHECK_CODE(create(&front, "one", NULL, NULL), CODE_DEADLINE_EXCEEDED);
    CHECK(ms_since(start) >= 100 && ms_since(start) < 1000);
    close_both(&front, &child);
}

static void
a_child_that_hangs_is_left_alone_until_it_answers_again(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    front_open(&front, &(struct front_setup){.settings = quick_settings(&front, &child),
                                             .timeout_ms = 100});
    CHECK(wait_for_facts(front.driver, true, NULL));
    atomic_store(&child.hangs, true);
    atomic_store(&child.identity_hangs, true);
    CHECK(wait_for_facts(front.driver, false, NULL));
    uint64_t refused_since = 0;
    for (uint64_t start = timers_now(); !refused_since && ms_since(start) < PATIENCE_MS;) {
        struct error *error = create(&front, "one", NULL, NULL);
        if (error && error->code == CODE_UNAVAILABLE)
            refused_since = timers_now();
        error_free(error);
    }
    CHECK(refused_since);
    uint64_t start = timers_now();
    struct error *error = create(&front, "one", NULL, NULL);
    CHECK(ms_since(start) < 90);
    CHECK(error && strstr(error->message, "connection \"slow\": it has not answered for "));
    CHECK_CODE(error, CODE_UNAVAILABLE);
    atomic_store(&child.hangs, false);
    atomic_store(&child.identity_hangs, false);
    gate_pass(&child.may_go);
    CHECK(wait_for_facts(front.driver, true, NULL));
    CHECK_CODE(create(&front, "one", NULL, NULL), CODE_OK);
    close_both(&front, &child);
}

/* The calls' own failures open the breaker; then the monitor looks at once, not after its interval. */
static void
a_breaker_that_opens_makes_the_monitor_look(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    front_open(&front,
               &(struct front_setup){.settings = calm_settings(&front, &child), .timeout_ms = 50});
    CHECK(wait_for_facts(front.driver, true, NULL));
    int probes = atomic_load(&child.probes);
    atomic_store(&child.hangs, true);
    for (unsigned n = 0; n < 5; n++)
        CHECK_CODE(create(&front, "one", NULL, NULL), CODE_DEADLINE_EXCEEDED);
    uint64_t start = timers_now();
    while (atomic_load(&child.probes) == probes && ms_since(start) < PATIENCE_MS)
        sleep_ms(2);
    CHECK_NUMBER(atomic_load(&child.probes), probes + 1);
    atomic_store(&child.hangs, false);
    start = timers_now();
    struct error *error = create(&front, "one", NULL, NULL);
    while (error && ms_since(start) < PATIENCE_MS) {
        error_free(error);
        sleep_ms(2);
        error = create(&front, "one", NULL, NULL);
    }
    CHECK_CODE(error, CODE_OK); /* Probe was answered, so calls pass again */
    close_both(&front, &child);
}

static void
closing_does_not_wait_for_a_child_that_hangs(void)
{
    struct child child;
    struct front front;
    child_open(&child, CHILD_BOTH);
    front_prepare(&front);
    atomic_store(&child.identity_hangs, true);
    const struct setting *settings =
        make_settings(&front.arena, "endpoint", child.ends.address, "probe-timeout", "1h", NULL);
    front_open(&front, &(struct front_setup){.settings = settings});
    CHECK(gate_wait(&child.entered, 1));
    uint64_t start = timers_now();
    front_close(&front);
    CHECK(ms_since(start) < 1000);
    child_close(&child);
}

int
main(void)
{
    more_calls_than_may_be_are_refused_at_once();
    a_call_takes_no_longer_than_it_may();
    a_child_that_hangs_is_left_alone_until_it_answers_again();
    a_breaker_that_opens_makes_the_monitor_look();
    closing_does_not_wait_for_a_child_that_hangs();
    return check_report("test_driver_csi_hangs");
}
