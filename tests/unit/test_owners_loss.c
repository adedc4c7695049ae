/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of volumes after the registry has lost its data: the rules of docs/cluster.md, one case each. */
#include "owners_pair.h"

static void
nothing_is_settled_until_all_members_have_announced(void)
{
    struct pair pair;
    begin(&pair);
    claim(&pair.a, "home", CLAIM_LIVE, 0);
    claim(&pair.a, "here", CLAIM_LIVE, 3);
    claim(&pair.a, "gone", CLAIM_GONE, 2);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_NUMBER(count_rows(pair.rows, "owner/"), 2);
    CHECK_UNKNOWN(&pair.a, "here", "yet: b. Start");
    CHECK_UNKNOWN(&pair.a, "gone", "yet: b. Start");
    CHECK_UNKNOWN(&pair.a, "home", "yet: b. Start");
    CHECK_UNKNOWN(&pair.a, "other", "yet: b. Start");
    CHECK_CODE(swap(&pair.a, "here", "a", 3, "b"), CODE_UNAVAILABLE);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "here", "a", 3);
    CHECK_OWNER(&pair.b, "gone", "", 2);
    CHECK_OWNER(&pair.a, "home", "", 0);
    end(&pair);
}

static void
claims_are_settled_when_all_members_have_announced(void)
{
    struct pair pair;
    begin(&pair);
    claim(&pair.a, "kept", CLAIM_MOVING, 5);
    claim(&pair.a, "taken", CLAIM_MOVING, 5);
    claim(&pair.b, "taken", CLAIM_INCOMING, 5);
    claim(&pair.a, "old-copy", CLAIM_MOVING, 6);
    claim(&pair.b, "old-copy", CLAIM_INCOMING, 5);
    claim(&pair.a, "only-copy", CLAIM_INCOMING, 1);
    claim(&pair.a, "first-move", CLAIM_MOVING, 1);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.a, "kept", "yet: b. Start");
    CHECK_CODE(swap(&pair.a, "kept", "a", 4, "a"), CODE_UNAVAILABLE);
    CHECK_CODE(swap(&pair.a, "first-move", "a", 0, "a"), CODE_UNAVAILABLE);
    CHECK_NUMBER(count_rows(pair.rows, "owner/"), 0);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.b, "kept", "a", 4);
    CHECK_OWNER(&pair.a, "taken", "b", 5);
    CHECK_OWNER(&pair.b, "old-copy", "a", 5);
    CHECK_OWNER(&pair.b, "only-copy", "a", 1);
    CHECK_OWNER(&pair.b, "first-move", "", 0);
    CHECK_OK(swap(&pair.b, "first-move", "a", 0, "b"));
    CHECK_OWNER(&pair.a, "first-move", "b", 1);
    end(&pair);
}

static void
a_volume_that_has_left_is_where_it_went(void)
{
    struct pair pair;
    char before[OWNER_CHANGES_SIZE], after[OWNER_CHANGES_SIZE];
    begin(&pair);
    claim_left(&pair.a, "away", "c", 3);
    claim_left(&pair.a, "twice", "b", 3);
    claim_left(&pair.b, "twice", "c", 4);
    claim_left(&pair.a, "decided", "c", 3);
    claim(&pair.b, "decided", CLAIM_INCOMING, 3);
    claim_left(&pair.a, "later", "c", 3);
    claim(&pair.b, "later", CLAIM_INCOMING, 4);
    claim_left(&pair.a, "on", "b", 3);
    claim(&pair.b, "on", CLAIM_MOVING, 4);
    claim_left(&pair.a, "recovered", "c", 5);
    claim(&pair.b, "recovered", CLAIM_LIVE, 4);
    claim_left(&pair.a, "here", "c", 4);
    claim(&pair.b, "here", CLAIM_LIVE, 5);
    claim_left(&pair.a, "gone", "b", 2);
    claim(&pair.b, "gone", CLAIM_GONE, 3);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.a, "away", "yet: b. Start");
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "away", "c", 3);
    CHECK_OWNER(&pair.a, "twice", "c", 4);
    CHECK_OWNER(&pair.b, "decided", "c", 3);
    CHECK_OWNER(&pair.b, "later", "b", 4);
    CHECK_OWNER(&pair.b, "on", "b", 3);
    CHECK_OK(pair.b.it->read_changes(pair.b.owners, before));
    CHECK_OWNER(&pair.a, "recovered", "c", 5);
    CHECK_OK(pair.b.it->read_changes(pair.b.owners, after));
    CHECK(strcmp(before, after) != 0);
    CHECK_OWNER(&pair.a, "here", "b", 5);
    CHECK_OWNER(&pair.a, "gone", "", 3);
    CHECK_NUMBER(count_rows(pair.rows, "left/"), 9);
    CHECK_OK(forget(&pair.b, "gone"));
    CHECK_NUMBER(count_rows(pair.rows, "left/"), 8);
    CHECK_OWNER(&pair.a, "gone", "", 0);
    end(&pair);
}

/* It may have been deleted there since. */
static void
a_node_that_nobody_waited_for_does_not_say_what_has_left_it(void)
{
    struct pair pair;
    begin_announced(&pair);
    CHECK_OWNER(&pair.a, "v", "", 0);
    struct node c = make_node("c", pair.rows);
    start_node(&c);
    claim_left(&c, "v", "a", 1);
    CHECK_OK(owners_renew(c.owners));
    restart_node(&pair.a);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OWNER(&pair.a, "v", "", 0);
    end_node(&c);
    end(&pair);
    begin(&pair);
    claim_left(&pair.b, "v", "a", 1);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_remove_member(pair.a.owners, "b"));
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "v", "", 0);
    CHECK_NUMBER(count_rows(pair.rows, "left/"), 0);
    end(&pair);
}

static void
the_members_of_members_are_awaited(void)
{
    struct pair pair;
    char ids[256];
    begin(&pair);
    CHECK_OK(pair.b.it->add_member(pair.b.owners, "c"));
    struct node c = make_node("c", pair.rows);
    start_node(&c);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.a, "v", "yet: b. Start");
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_UNKNOWN(&pair.a, "v", "yet: c. Start");
    CHECK_CODE(list_members(&pair.a, ids), CODE_UNAVAILABLE);
    CHECK_OK(owners_renew(c.owners));
    CHECK_OWNER(&pair.a, "v", "", 0);
    CHECK_OK(list_members(&pair.a, ids));
    CHECK_TEXT(ids, "a b c");
    end_node(&c);
    end(&pair);
}

static void
nobody_waits_for_a_node_that_is_removed(void)
{
    struct pair pair;
    char ids[256];
    begin(&pair);
    claim(&pair.a, "v", CLAIM_MOVING, 1);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.a, "v", "yet: b. Start");
    CHECK_OK(owners_remove_member(pair.a.owners, "b"));
    CHECK_OWNER(&pair.a, "v", "", 0);
    CHECK_OK(list_members(&pair.a, ids));
    CHECK_TEXT(ids, "a");
    CHECK_OK(owners_renew(pair.b.owners)); /* it joins again */
    CHECK_OK(list_members(&pair.a, ids));
    CHECK_TEXT(ids, "a b");
    CHECK_OK(owners_remove_member(pair.a.owners, "b"));
    restart_node(&pair.b);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OK(list_members(&pair.a, ids));
    CHECK_TEXT(ids, "a b");
    end(&pair);
}

static void
a_node_announces_again_to_a_new_incarnation_only(void)
{
    struct pair pair;
    begin_announced(&pair);
    CHECK_OWNER(&pair.a, "w", "", 0);
    CHECK_OK(swap(&pair.b, "v", "", 0, "b"));
    claim(&pair.b, "v", CLAIM_LIVE, 1);
    restart_node(&pair.b);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_NUMBER(pair.b.walks, 1);
    CHECK_OWNER(&pair.b, "v", "b", 1);
    lose_rows(pair.rows);
    CHECK_UNKNOWN(&pair.a, "v", "lost its data");
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.a, "v", "yet: b. Start");
    CHECK_UNKNOWN(&pair.a, "w", "yet: b. Start");
    CHECK_UNKNOWN(&pair.b, "v", "lost its data");
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_NUMBER(pair.b.walks, 2);
    CHECK_OWNER(&pair.a, "v", "b", 1);
    end(&pair);
}

static void
a_swap_of_an_old_incarnation_has_no_effect(void)
{
    struct pair pair;
    struct late late;
    begin_announced(&pair);
    CHECK_OWNER(&pair.b, "v", "", 0);
    pair.b.way.before = keep_write;
    pair.b.way.context = &late;
    CHECK_CODE(swap(&pair.b, "v", "", 0, "b"), CODE_UNAVAILABLE);
    pair.b.way.before = NULL;
    lose_rows(pair.rows);
    claim(&pair.a, "v", CLAIM_MOVING, 1);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "v", "", 0);
    CHECK_OK(store_write(pair.rows, &late.change, 1, NULL));
    CHECK_OWNER(&pair.a, "v", "", 0);
    end(&pair);
}

struct loss {
    struct node *other;
    unsigned after; /* so many calls */
};

/* The registry loses its data between two calls, and another node makes a new incarnation. */
static enum fate
lose_between(void *context, const struct store_change *changes, size_t count)
{
    struct loss *loss = context;
    (void)changes;
    (void)count;
    if (!loss->after--) {
        lose_rows(loss->other->way.rows);
        CHECK_OK(owners_renew(loss->other->owners));
    }
    return FATE_DONE;
}

static void
an_answer_of_an_old_incarnation_is_discarded(void)
{
    struct pair pair;
    begin_announced(&pair);
    CHECK_OK(swap(&pair.b, "v", "", 0, "b"));
    CHECK_OWNER(&pair.a, "v", "b", 1);
    struct loss loss = {&pair.b, 1};
    pair.a.way.before = lose_between;
    pair.a.way.context = &loss;
    CHECK_UNKNOWN(&pair.a, "v", "lost its data");
    end(&pair);
}

static enum fate
announce_after(void *context, const struct store_change *changes, size_t count)
{
    struct loss *loss = context;
    (void)changes;
    (void)count;
    if (!loss->after--)
        CHECK_OK(owners_renew(loss->other->owners));
    return FATE_DONE;
}

static struct error *
read_while_other_announces(const struct claim *theirs, const char *their_peer, unsigned after,
                           struct owner *out)
{
    struct pair pair;
    begin(&pair);
    if (theirs)
        pair.b.claims[pair.b.claim_count++] = *theirs;
    if (their_peer)
        CHECK_OK(pair.b.it->add_member(pair.b.owners, their_peer));
    CHECK_OK(owners_renew(pair.a.owners));
    struct loss loss = {&pair.b, after};
    pair.a.way.before = announce_after;
    pair.a.way.context = &loss;
    struct error *error = read_owner(&pair.a, "v", out);
    end(&pair);
    return error;
}

static void
a_read_sees_all_of_an_announcement_or_nothing(void)
{
    static const struct claim claims[] = {{"v", CLAIM_LIVE, 7}, {"v", CLAIM_INCOMING, 7}};
    unsigned answers = 0;
    struct owner owner;
    for (size_t i = 0; i < COUNT_OF(claims); i++)
        for (unsigned after = 0; after < 12; after++) {
            struct error *error = read_while_other_announces(&claims[i], NULL, after, &owner);
            CHECK(!error || error->code == CODE_UNAVAILABLE);
            CHECK(error || (owner.epoch == 7 && !strcmp(owner.node_id, "b")));
            answers += !error;
            error_free(error);
        }
    CHECK(answers > 1);
    for (unsigned after = 0; after < 12; after++)
        CHECK_CODE(read_while_other_announces(NULL, "c", after, &owner), CODE_UNAVAILABLE);
}

static enum fate
fail_writes(void *context, const struct store_change *changes, size_t count)
{
    unsigned *left = context;
    (void)count;
    if (!changes)
        return FATE_DONE;
    return *left && (*left)-- ? FATE_DONE : FATE_NOT_DONE;
}

/* More than one write can hold, interrupted after each of them in turn. */
static void
an_announcement_that_was_interrupted_is_completed(void)
{
    static char handles[40][8];
    struct pair pair;
    begin(&pair);
    for (size_t i = 0; i < COUNT_OF(handles); i++) {
        snprintf(handles[i], sizeof handles[i], "v%zu", i);
        claim(&pair.a, handles[i], i % 2 ? CLAIM_LIVE : CLAIM_MOVING, i + 1);
    }
    pair.a.way.before = fail_writes;
    enum code code = CODE_UNAVAILABLE;
    for (unsigned i = 0; i < 100 && code; i++) {
        pair.a.way.context = &(unsigned){i};
        code = code_of(owners_renew(pair.a.owners));
        CHECK(!code || count_rows(pair.rows, "announced/") == 0);
        if (code)
            CHECK_UNKNOWN(&pair.a, "v1", "has not announced");
    }
    CHECK_NUMBER(code, CODE_OK);
    CHECK(pair.a.walks > 3);
    CHECK_NUMBER(count_rows(pair.rows, "owner/"), 20);
    CHECK_NUMBER(count_rows(pair.rows, "claim/"), 20);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "v39", "a", 40);
    end(&pair);
}

static void
a_live_node_does_not_replace_another_owner(void)
{
    struct pair pair;
    begin(&pair);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_remove_member(pair.a.owners, "b"));
    CHECK_OK(swap(&pair.a, "v", "", 0, "a"));
    claim(&pair.b, "v", CLAIM_LIVE, 1);
    claim(&pair.b, "w", CLAIM_LIVE, 1);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.b, "v", "a", 1);
    CHECK_OWNER(&pair.a, "w", "b", 1);
    end(&pair);
}

/* The registry lost its data after a recovery, and the node whose volume was recovered is first. */
static void
of_two_live_nodes_the_one_with_the_later_epoch_wins(void)
{
    struct pair pair;
    struct owner owner;
    begin(&pair);
    claim(&pair.a, "v", CLAIM_LIVE, 1);
    claim(&pair.a, "w", CLAIM_LIVE, 1);
    claim(&pair.b, "v", CLAIM_LIVE, 2);
    claim(&pair.b, "w", CLAIM_GONE, 3);
    pair.b.claims[0].recovered_epoch = pair.b.claims[1].recovered_epoch = 2;
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.a, "v", "yet: b. Start");
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "v", "b", 2);
    CHECK_OWNER(&pair.a, "w", "", 3);
    CHECK_OK(read_owner(&pair.a, "v", &owner));
    CHECK_NUMBER(owner.recovered_epoch, 2);
    CHECK_OK(swap(&pair.b, "v", "b", 2, "a"));
    CHECK_OK(read_owner(&pair.a, "v", &owner));
    CHECK_NUMBER(owner.recovered_epoch, 2);
    end(&pair);
}

/* The recovered volume was in the middle of a move or of another recovery. */
static void
claims_win_over_a_live_node_that_does_not_know_of_a_recovery(void)
{
    struct pair pair;
    struct owner owner;
    char before[OWNER_CHANGES_SIZE], after[OWNER_CHANGES_SIZE];
    begin(&pair);
    claim(&pair.a, "gives", CLAIM_LIVE, 1);
    claim(&pair.b, "gives", CLAIM_MOVING, 3);
    claim(&pair.a, "takes", CLAIM_LIVE, 1);
    claim(&pair.b, "takes", CLAIM_INCOMING, 3);
    claim(&pair.a, "begins", CLAIM_LIVE, 1);
    claim(&pair.b, "begins", CLAIM_INCOMING, 2);
    pair.b.claims[0].recovered_epoch = 2;
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OK(pair.a.it->read_changes(pair.a.it->context, before));
    CHECK_OWNER(&pair.b, "gives", "b", 2);
    CHECK_OK(read_owner(&pair.a, "gives", &owner));
    CHECK_NUMBER(owner.recovered_epoch, 2);
    CHECK_OWNER(&pair.a, "takes", "b", 3);
    CHECK_OWNER(&pair.a, "begins", "a", 1);
    CHECK_OK(pair.a.it->read_changes(pair.a.it->context, after));
    CHECK(strcmp(before, after) != 0);
    end(&pair);
}

static void
all_nodes_hear_of_a_recovery(void)
{
    struct pair pair;
    char before[OWNER_CHANGES_SIZE], after[OWNER_CHANGES_SIZE];
    struct owner from = {.epoch = 1, .node_id = "b"};
    struct owner to = {.epoch = 2, .node_id = "a", .recovered_epoch = 2};
    begin_announced(&pair);
    CHECK_OK(pair.b.it->read_changes(pair.b.it->context, before));
    CHECK_OK(swap(&pair.b, "v", "", 0, "b"));
    CHECK_OK(pair.b.it->read_changes(pair.b.it->context, after));
    CHECK_TEXT(after, before);
    CHECK_OK(pair.a.it->swap(pair.a.it->context, "v", &from, &to));
    CHECK_OK(pair.b.it->read_changes(pair.b.it->context, after));
    CHECK(strcmp(before, after) != 0);
    CHECK_OK(pair.a.it->swap(pair.a.it->context, "v", &from, &to)); /* has no effect */
    CHECK_OK(pair.b.it->read_changes(pair.b.it->context, before));
    CHECK_TEXT(before, after);
    lose_rows(pair.rows);
    CHECK_CODE(pair.b.it->read_changes(pair.b.it->context, after), CODE_UNAVAILABLE);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OK(pair.b.it->read_changes(pair.b.it->context, after));
    CHECK(strcmp(before, after) != 0);
    end(&pair);
}

int
main(void)
{
    nothing_is_settled_until_all_members_have_announced();
    claims_are_settled_when_all_members_have_announced();
    a_volume_that_has_left_is_where_it_went();
    a_node_that_nobody_waited_for_does_not_say_what_has_left_it();
    the_members_of_members_are_awaited();
    nobody_waits_for_a_node_that_is_removed();
    a_node_announces_again_to_a_new_incarnation_only();
    a_swap_of_an_old_incarnation_has_no_effect();
    an_answer_of_an_old_incarnation_is_discarded();
    a_read_sees_all_of_an_announcement_or_nothing();
    an_announcement_that_was_interrupted_is_completed();
    a_live_node_does_not_replace_another_owner();
    of_two_live_nodes_the_one_with_the_later_epoch_wins();
    claims_win_over_a_live_node_that_does_not_know_of_a_recovery();
    all_nodes_hear_of_a_recovery();
    return check_report("owners_loss");
}
