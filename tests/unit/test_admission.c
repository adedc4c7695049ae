/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/loop/admission.c: shares of a pool, and turns. */
#include "rpc/loop/admission.h"

#include "base/buffer.h"
#include "check.h"

/* ---- the share ---- */

static size_t
take_all(struct budget *budget)
{
    while (budget_take(budget, 1))
        continue;
    return budget->used;
}

/* One after the other, each takes half of what is left: soon there is nothing. */
static void
what_is_guaranteed_is_there_whatever_others_hold(void)
{
    enum { CONNECTIONS = 50, GUARANTEED = 100 };
    struct pool pool = {.limit = 10000, .guaranteed = GUARANTEED};
    struct budget budgets[CONNECTIONS] = {0};
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        budgets[i].pool = &pool;
        CHECK(take_all(&budgets[i]) >= GUARANTEED);
        CHECK(pool.used <= pool.limit);
    }
    for (unsigned i = 0; i < CONNECTIONS; i++)
        budget_give_back(&budgets[i], budgets[i].used);
    CHECK_NUMBER(pool.used, 0);
}

static void
each_connection_gets_as_much_as_it_leaves_free(void)
{
    enum { LIMIT = 4096, CONNECTIONS = 12 };
    struct pool pool = {.limit = LIMIT};
    struct budget budgets[CONNECTIONS] = {0};
    for (unsigned i = 0; i < CONNECTIONS; i++)
        budgets[i].pool = &pool;
    /* One after the other: each takes half of what the ones before have left. */
    for (unsigned i = 0; i < CONNECTIONS; i++)
        CHECK_NUMBER(take_all(&budgets[i]), (LIMIT - (pool.used - budgets[i].used)) / 2);
    CHECK(pool.used < LIMIT);
}

/* Two who take turns end with a third each, and a third is free. */
static void
greedy_connections_get_the_same(void)
{
    struct pool pool = {.limit = 3000};
    struct budget one = {.pool = &pool}, two = {.pool = &pool};
    bool more = true;
    while (more) {
        more = budget_take(&one, 1);
        more |= budget_take(&two, 1);
    }
    CHECK_NUMBER(one.used, 1000);
    CHECK_NUMBER(two.used, 1000);
}

static void
a_connection_that_holds_nothing_gets_the_last_piece(void)
{
    struct pool pool = {.limit = 3};
    struct budget budgets[4] = {{.pool = &pool}, {.pool = &pool}, {.pool = &pool}, {.pool = &pool}};
    CHECK(budget_take(&budgets[0], 1));
    CHECK(budget_take(&budgets[1], 1));
    CHECK(!budget_take(&budgets[0], 1));
    CHECK(budget_take(&budgets[2], 1));
    CHECK(!budget_take(&budgets[3], 1));
    CHECK_NUMBER(pool.used, 3);
}

/* ---- turns ---- */

struct named_turn {
    struct turn turn; /* first */
    const char *name;
    struct buffer *seen;
    bool wants;
};

static bool
begin_named(struct turn *turn)
{
    struct named_turn *named = (struct named_turn *)turn;
    buffer_print(named->seen, "%s ", named->name);
    return named->wants;
}

static void
connections_take_turns(void)
{
    struct admission admission;
    struct buffer seen AUTO(buffer_clear) = {0};
    admission_init(&admission, 1, 1);
    struct account *a = account_new(&admission), *b = account_new(&admission);
    struct named_turn turns[] = {
        {{NULL, begin_named}, "a1", &seen, true}, {{NULL, begin_named}, "a2", &seen, true},
        {{NULL, begin_named}, "a3", &seen, true}, {{NULL, begin_named}, "b1", &seen, false},
        {{NULL, begin_named}, "b2", &seen, true},
    };
    for (size_t i = 0; i < COUNT_OF(turns); i++)
        admission_await_turn(&admission, i < 3 ? a : b, &turns[i].turn);
    CHECK_TEXT(buffer_text(&seen), "a1 ");
    admission_end_turn(&admission);
    CHECK_TEXT(buffer_text(&seen), "a1 a2 ");
    admission_end_turn(&admission);
    CHECK_TEXT(buffer_text(&seen), "a1 a2 b1 a3 ");
    admission_end_turn(&admission);
    admission_end_turn(&admission);
    CHECK_TEXT(buffer_text(&seen), "a1 a2 b1 a3 b2 ");
    account_release(a);
    account_release(b);
    admission_clear(&admission);
}

int
main(void)
{
    what_is_guaranteed_is_there_whatever_others_hold();
    each_connection_gets_as_much_as_it_leaves_free();
    greedy_connections_get_the_same();
    a_connection_that_holds_nothing_gets_the_last_piece();
    connections_take_turns();
    return check_report("test_admission");
}
