/* SPDX-License-Identifier: Apache-2.0 */
/* Looking before sleeping: for as long as it has been worth it. */
#include "check.h"
#include "rpc/loop/lookout.h"

#define US UINT64_C(1000)

/* Events that come so far apart, from a time on. */
static uint64_t
come(struct lookout *lookout, uint64_t now, uint64_t apart, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        lookout_note_event(lookout, now += apart);
    return now;
}

static void
nothing_is_looked_for_at_first(void)
{
    struct lookout lookout = {0};
    CHECK(!lookout_is_on(&lookout, 5000 * US));
    lookout_note_event(&lookout, 5000 * US);
    CHECK(!lookout_is_on(&lookout, 5000 * US));
}

static void
what_comes_soon_is_looked_for(void)
{
    struct lookout lookout = {0};
    uint64_t now = come(&lookout, 5000 * US, 150 * US, 8);
    CHECK(lookout_is_on(&lookout, now + 150 * US));
    CHECK(!lookout_is_on(&lookout, now + LOOKOUT_MOST_NS));
}

static void
what_comes_late_is_slept_for(void)
{
    struct lookout lookout = {0};
    uint64_t now = come(&lookout, 5000 * US, 150 * US, 8);
    now = come(&lookout, now, 1000 * US, 8);
    CHECK(!lookout_is_on(&lookout, now));
}

static void
one_late_event_does_not_end_it(void)
{
    struct lookout lookout = {0};
    uint64_t now = come(&lookout, 5000 * US, 60 * US, 8);
    now = come(&lookout, now, 1000 * US, 1);
    CHECK(lookout_is_on(&lookout, now + 30 * US));
}

static void
it_looks_no_longer_than_it_must(void)
{
    struct lookout lookout = {0};
    uint64_t now = come(&lookout, 5000 * US, 30 * US, 100);
    CHECK(lookout_is_on(&lookout, now + 30 * US));
    CHECK(!lookout_is_on(&lookout, now + 60 * US));
}

static void
in_company_it_sleeps_for_a_while(void)
{
    struct lookout lookout = {0};
    uint64_t now = come(&lookout, 5000 * US, 60 * US, 8);
    lookout_note_company(&lookout);
    now = come(&lookout, now, 60 * US, LOOKOUT_COMPANY - 1);
    CHECK(!lookout_is_on(&lookout, now));
    now = come(&lookout, now, 60 * US, 1);
    CHECK(lookout_is_on(&lookout, now));
}

int
main(void)
{
    nothing_is_looked_for_at_first();
    what_comes_soon_is_looked_for();
    what_comes_late_is_slept_for();
    one_late_event_does_not_end_it();
    it_looks_no_longer_than_it_must();
    in_company_it_sleeps_for_a_while();
    return check_report("test_lookout");
}
