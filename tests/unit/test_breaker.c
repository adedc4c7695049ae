/* SPDX-License-Identifier: Apache-2.0 */
/* The breaker: what opens it, what closes it, and what says nothing. */
#include "drivers/breaker.h"

#include <string.h>

#include "check.h"

static bool
note(struct breaker *breaker, enum code code, bool from_peer, uint64_t now_ms)
{
    struct error *error AUTO(error_cleanup) = error_new(code, "failure at %d", (int)now_ms);
    error->from_peer = from_peer;
    return breaker_note(breaker, error, now_ms);
}

static bool
lets_pass(struct breaker *breaker)
{
    struct error *error AUTO(error_cleanup) = breaker_check(breaker, 99000);
    CHECK(!error || error->code == CODE_UNAVAILABLE);
    return !error;
}

static void
opens_with_the_fifth_failure_in_a_row(void)
{
    struct breaker breaker AUTO(breaker_clear);
    breaker_init(&breaker);
    for (unsigned i = 1; i < BREAKER_FAILURES; i++) {
        CHECK(!(i % 2 ? note(&breaker, CODE_UNAVAILABLE, false, i * 1000)
                      : note(&breaker, CODE_DEADLINE_EXCEEDED, i % 4, i * 1000)));
        CHECK(lets_pass(&breaker));
    }
    CHECK(note(&breaker, CODE_UNAVAILABLE, false, 5000));
    CHECK(!lets_pass(&breaker));
    CHECK(!note(&breaker, CODE_UNAVAILABLE, false, 6000)); /* it is open already */
    struct error *error AUTO(error_cleanup) = breaker_check(&breaker, 13999);
    CHECK_TEXT(error->message, "it has not answered for 12 s and is being probed: failure at 6000");
}

static void
closes_with_any_answer(void)
{
    const enum code answers[] = {CODE_UNAVAILABLE, CODE_INTERNAL, CODE_CANCELLED};
    struct breaker breaker AUTO(breaker_clear);
    breaker_init(&breaker);
    for (size_t i = 0; i <= COUNT_OF(answers); i++) {
        for (unsigned n = 0; n < BREAKER_FAILURES; n++)
            note(&breaker, CODE_UNAVAILABLE, false, 1000);
        CHECK(!lets_pass(&breaker));
        if (i < COUNT_OF(answers))
            CHECK(!note(&breaker, answers[i], true, 2000));
        else
            CHECK(!breaker_note(&breaker, NULL, 2000));
        CHECK(lets_pass(&breaker));
    }
}

static void
an_answer_between_failures_counts(void)
{
    struct breaker breaker AUTO(breaker_clear);
    breaker_init(&breaker);
    for (unsigned i = 1; i <= 3 * BREAKER_FAILURES; i++) {
        if (i % BREAKER_FAILURES == 0)
            breaker_note(&breaker, NULL, 1);
        else
            CHECK(!note(&breaker, CODE_UNAVAILABLE, false, 1));
    }
    CHECK(lets_pass(&breaker));
}

static void
a_cancelled_call_says_nothing(void)
{
    struct breaker breaker AUTO(breaker_clear);
    breaker_init(&breaker);
    for (unsigned i = 1; i < BREAKER_FAILURES; i++)
        note(&breaker, CODE_UNAVAILABLE, false, 1);
    CHECK(!note(&breaker, CODE_CANCELLED, false, 1));
    CHECK(lets_pass(&breaker));
    CHECK(note(&breaker, CODE_UNAVAILABLE, false, 1));
}

static void *
fail_often(void *argument)
{
    uintptr_t opened = 0;
    for (unsigned i = 0; i < 1000; i++)
        opened += note(argument, CODE_UNAVAILABLE, false, 1);
    return (void *)opened;
}

/* However many threads see it fail, one of them is told that it has opened. */
static void
opens_once(void)
{
    struct breaker breaker AUTO(breaker_clear);
    pthread_t threads[4];
    uintptr_t opened = 0;
    breaker_init(&breaker);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK_NUMBER(pthread_create(&threads[i], NULL, fail_often, &breaker), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *times;
        pthread_join(threads[i], &times);
        opened += (uintptr_t)times;
    }
    CHECK_NUMBER(opened, 1);
}

int
main(void)
{
    opens_with_the_fifth_failure_in_a_row();
    closes_with_any_answer();
    an_answer_between_failures_counts();
    a_cancelled_call_says_nothing();
    opens_once();
    return check_report("breaker");
}
