/* SPDX-License-Identifier: Apache-2.0 */
/* Which node gets the next copy of a snapshot. */
#include "volumes/replica_choice.h"

#include <string.h>

#include "check.h"

static void
expect(struct replica_candidate *candidates, size_t count, const char *own_zone, const char *wanted)
{
    const struct replica_candidate *best = replica_choice_make(candidates, count, own_zone);
    CHECK(best ? wanted && strcmp(best->node_id, wanted) == 0 : !wanted);
}

static void
test_most_room(void)
{
    struct replica_candidate nodes[] = {
        {"a", "", 10, false, false}, {"b", "", 30, false, false}, {"c", "", 20, false, false}};
    expect(nodes, 3, "", "b");
    nodes[1].is_taken = true;
    expect(nodes, 3, "", "c");
    nodes[0].is_taken = nodes[2].is_taken = true;
    expect(nodes, 3, "", NULL);
    expect(nodes, 0, "", NULL);
}

static void
test_earlier_snapshot_saves_a_transfer(void)
{
    struct replica_candidate nodes[] = {{"a", "", 10, true, false}, {"b", "", 30, false, false}};
    expect(nodes, 2, "", "a");
    nodes[0].is_taken = true;
    expect(nodes, 2, "", "b");
}

static void
test_zones_come_first(void)
{
    struct replica_candidate nodes[] = {{"a", "x", 90, true, false},
                                        {"b", "y", 10, false, false},
                                        {"c", "y", 20, false, false},
                                        {"d", "", 99, false, false}};
    expect(nodes, 4, "x", "c"); /* not the zone of the snapshot itself */
    nodes[2].is_taken = true;
    expect(nodes, 4, "x", "a"); /* both zones have one now: the earlier snapshot counts */
    nodes[0].is_taken = true;
    expect(nodes, 4, "x", "d");
    expect(nodes, 4, "", "d");
}

int
main(void)
{
    test_most_room();
    test_earlier_snapshot_saves_a_transfer();
    test_zones_come_first();
    return check_report("replica choice");
}
