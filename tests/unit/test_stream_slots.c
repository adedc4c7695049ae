/* SPDX-License-Identifier: Apache-2.0 */
/* Who may fetch a snapshot that is spread. */
#include "volumes/stream_slots.h"

#include "check.h"

static void
expect_busy(struct error *error)
{
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    error_free(error);
}

static void
test_two_nodes_at_a_time(void)
{
    struct stream_slots slots;
    stream_slots_init(&slots);
    CHECK(!stream_slots_take(&slots, "s", "a", 0));
    CHECK(!stream_slots_take(&slots, "s", "b", 0));
    expect_busy(stream_slots_take(&slots, "s", "c", 0));
    expect_busy(stream_slots_begin(&slots, "s", "c", 0));
    CHECK(!stream_slots_take(&slots, "s", "a", 1)); /* its own */
    CHECK(!stream_slots_take(&slots, "other", "c", 1));
    stream_slots_release(&slots, "s", "b");
    CHECK(!stream_slots_take(&slots, "s", "c", 2));
    stream_slots_clear(&slots);
}

static void
test_slot_stays_after_its_stream(void)
{
    struct stream_slots slots;
    stream_slots_init(&slots);
    CHECK(!stream_slots_begin(&slots, "s", "a", 0));
    CHECK(!stream_slots_begin(&slots, "s", "b", 0));
    stream_slots_release(&slots, "s", "a"); /* of a stream that is still there */
    expect_busy(stream_slots_take(&slots, "s", "c", 1000 * STREAM_SLOTS_IDLE_MS));
    stream_slots_end(&slots, "s", "a", 5000);
    expect_busy(stream_slots_take(&slots, "s", "c", 5000 + STREAM_SLOTS_IDLE_MS));
    CHECK(!stream_slots_take(&slots, "s", "c", 5001 + STREAM_SLOTS_IDLE_MS));
    stream_slots_clear(&slots);
}

static void
test_end_of_nothing(void)
{
    struct stream_slots slots;
    stream_slots_init(&slots);
    stream_slots_end(&slots, "s", "a", 0);
    stream_slots_release(&slots, "s", "a");
    CHECK(!stream_slots_take(&slots, "s", "a", 0));
    stream_slots_clear(&slots);
}

int
main(void)
{
    test_two_nodes_at_a_time();
    test_slot_stays_after_its_stream();
    test_end_of_nothing();
    return check_report("stream slots");
}
