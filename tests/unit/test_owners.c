/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of volumes in the cluster store: the rules of docs/cluster.md, one case each; test_owners_loss.c has those of a registry that has lost its data. */
#include "owners_pair.h"

/* ---- without a loss ---- */

static void
the_first_node_makes_an_incarnation_and_others_join_it(void)
{
    struct pair pair;
    begin(&pair);
    CHECK_NUMBER(count_rows(pair.rows, ""), 0);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_NUMBER(count_rows(pair.rows, "incarnation"), 1);
    uint64_t before, after;
    CHECK_OK(store_revision(pair.rows, &before));
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(store_revision(pair.rows, &after));
    CHECK_NUMBER(after, before);
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_NUMBER(count_rows(pair.rows, "incarnation"), 1);
    CHECK_NUMBER(count_rows(pair.rows, "announced/"), 2);
    CHECK_OWNER(&pair.a, "v", "", 0);
    CHECK_OWNER(&pair.b, "v", "", 0);
    CHECK_NUMBER(pair.a.walks, 1);
    end(&pair);
}

static void
a_node_that_has_not_announced_gets_no_answer(void)
{
    struct pair pair;
    char ids[256];
    begin(&pair);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_UNKNOWN(&pair.b, "v", "has not announced");
    CHECK_CODE(swap(&pair.b, "v", "", 0, "b"), CODE_UNAVAILABLE);
    CHECK_CODE(forget(&pair.b, "v"), CODE_UNAVAILABLE);
    CHECK_CODE(list_members(&pair.b, ids), CODE_UNAVAILABLE);
    CHECK_NUMBER(pair.b.walks, 0);
    CHECK_NUMBER(pair.b.way.calls, 0);
    end(&pair);
}

static void
a_read_costs_two_round_trips(void)
{
    struct pair pair;
    begin_announced(&pair);
    CHECK_OWNER(&pair.a, "first", "", 0);
    pair.a.way.calls = 0;
    CHECK_OWNER(&pair.a, "never-moved", "", 0);
    CHECK_NUMBER(pair.a.way.calls, 2);
    CHECK_OK(swap(&pair.b, "moved", "", 0, "b"));
    pair.a.way.calls = 0;
    CHECK_OWNER(&pair.a, "moved", "b", 1);
    CHECK_NUMBER(pair.a.way.calls, 2);
    end(&pair);
}

static void
one_of_two_swaps_is_made(void)
{
    struct pair pair;
    begin_announced(&pair);
    CHECK_OK(swap(&pair.b, "v", "a", 0, "b"));
    CHECK_OK(swap(&pair.a, "v", "", 0, "a"));
    CHECK_OWNER(&pair.a, "v", "b", 1);
    CHECK_OK(swap(&pair.b, "v", "b", 1, "a"));
    CHECK_OK(swap(&pair.b, "v", "b", 2, "b")); /* the wrong owner */
    CHECK_OK(swap(&pair.b, "v", "a", 1, "b")); /* the wrong epoch */
    CHECK_OWNER(&pair.b, "v", "a", 2);
    CHECK_CODE(
        pair.a.it->swap(pair.a.owners, "v", &(struct owner){"a", 2}, &(struct owner){"a", 4}),
        CODE_INTERNAL);
    end(&pair);
}

struct rival {
    struct node *node;
    const char *handle;
    const char *from;
    uint64_t epoch;
    const char *to;
};

/* Just before a node writes, another one swaps. */
static enum fate
swap_first(void *context, const struct store_change *changes, size_t count)
{
    struct rival *rival = context;
    (void)count;
    if (changes)
        CHECK_OK(swap(rival->node, rival->handle, rival->from, rival->epoch, rival->to));
    return FATE_DONE;
}

static void
a_swap_that_another_one_overtakes_has_no_effect(void)
{
    struct pair pair;
    begin_announced(&pair);
    struct rival rival = {&pair.b, "v", "", 0, "b"};
    pair.a.way.before = swap_first;
    pair.a.way.context = &rival;
    CHECK_OK(swap(&pair.a, "v", "", 0, "a"));
    CHECK_OWNER(&pair.a, "v", "b", 1);
    rival = (struct rival){&pair.b, "v", "b", 1, "b"};
    CHECK_OK(swap(&pair.a, "v", "b", 1, "a"));
    CHECK_OWNER(&pair.a, "v", "b", 2);
    end(&pair);
}

static void
a_swap_in_doubt_is_an_error_and_may_be_made_later(void)
{
    struct pair pair;
    struct late late;
    begin_announced(&pair);
    CHECK_OWNER(&pair.b, "v", "", 0);
    pair.b.way.before = keep_write;
    pair.b.way.context = &late;
    struct error *error = swap(&pair.b, "v", "", 0, "b");
    CHECK(error && error->in_doubt);
    CHECK_CODE(error, CODE_UNAVAILABLE);
    CHECK_OWNER(&pair.a, "v", "", 0);
    CHECK_OK(store_write(pair.rows, &late.change, 1, NULL));
    CHECK_OWNER(&pair.a, "v", "b", 1);
    end(&pair);
}

static void
connections_do_not_see_each_other(void)
{
    struct pair pair;
    begin_announced(&pair);
    struct owners *other = owners_new(&(struct owners_options){
        &pair.a.way.base, pair.a.own, "fast", "a", {walk, &pair.a}, &quiet});
    CHECK_OK(owners_renew(other));
    CHECK_OK(swap(&pair.a, "v", "", 0, "a"));
    struct owner owner;
    const struct ownership *it = owners_interface(other);
    CHECK_CODE(it->read(it->context, "v", &owner), CODE_UNAVAILABLE); /* "b" is awaited */
    CHECK_OK(owners_remove_member(other, "b"));
    CHECK_OK(it->read(it->context, "v", &owner));
    CHECK_NUMBER(owner.epoch, 0);
    CHECK_NUMBER(count_rows(pair.rows, "incarnation"), 1);
    owners_free(other);
    end(&pair);
}

static void
handles_and_ids_that_do_not_fit_are_refused(void)
{
    struct pair pair;
    char text[300];
    begin_announced(&pair);
    memset(text, 'x', sizeof text);
    text[64] = '\0';
    CHECK_CODE(read_owner(&pair.a, text, &(struct owner){0}), CODE_INVALID_ARGUMENT);
    CHECK_OWNER(&pair.a, text + 1, "", 0);
    CHECK_CODE(read_owner(&pair.a, "", &(struct owner){0}), CODE_INVALID_ARGUMENT);
    CHECK_CODE(read_owner(&pair.a, "v/b", &(struct owner){0}), CODE_INVALID_ARGUMENT);
    memset(text, 'x', sizeof text);
    text[257] = '\0';
    CHECK_CODE(pair.a.it->add_member(pair.a.owners, text), CODE_INVALID_ARGUMENT);
    CHECK_OK(pair.a.it->add_member(pair.a.owners, text + 1));
    CHECK_CODE(pair.a.it->add_member(pair.a.owners, ""), CODE_INVALID_ARGUMENT);
    CHECK_CODE(owners_remove_member(pair.a.owners, text), CODE_INVALID_ARGUMENT);
    CHECK_CODE(owners_remove_member(pair.a.owners, "a"), CODE_FAILED_PRECONDITION);
    end(&pair);
}

static void
rows_are_listed_page_by_page(void)
{
    struct pair pair;
    struct arena arena AUTO(arena_clear);
    struct owner_list list;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    begin_announced(&pair);
    CHECK_OK(swap(&pair.b, "v2", "", 0, "b"));
    CHECK_OK(swap(&pair.b, "v1", "", 0, "b"));
    CHECK_OK(swap(&pair.b, "v1", "b", 1, ""));
    CHECK_OK(owners_list(pair.a.owners, NULL, 1, &arena, &list));
    CHECK_NUMBER(list.count, 1);
    CHECK(list.has_more);
    CHECK_TEXT(list.entries[0].handle, "v1");
    CHECK_TEXT(list.entries[0].owner.node_id, "");
    CHECK_NUMBER(list.entries[0].owner.epoch, 2);
    CHECK_OK(owners_list(pair.a.owners, "v1", 0, &arena, &list));
    CHECK_NUMBER(list.count, 1);
    CHECK(!list.has_more);
    CHECK_TEXT(list.entries[0].owner.node_id, "b");
    lose_rows(pair.rows);
    CHECK_CODE(owners_list(pair.a.owners, NULL, 0, &arena, &list), CODE_UNAVAILABLE);
    end(&pair);
}

static void
a_router_may_look_before_anything_is_announced(void)
{
    struct pair pair;
    struct owner owner = {.epoch = 9};
    begin(&pair);
    CHECK_OK(owners_peek(pair.rows, "local", "v", &owner));
    CHECK_NUMBER(owner.epoch, 0);
    claim(&pair.a, "v", CLAIM_LIVE, 3);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_peek(pair.rows, "local", "v", &owner));
    CHECK_TEXT(owner.node_id, "a");
    CHECK_NUMBER(owner.epoch, 3);
    CHECK_OK(owners_peek(pair.rows, "fast", "v", &owner));
    CHECK_NUMBER(owner.epoch, 0);
    CHECK_CODE(owners_peek(pair.rows, "local", "v/w", &owner), CODE_INVALID_ARGUMENT);
    end(&pair);
}

/* ---- deletions and members ---- */

static void
a_deleted_volume_is_forgotten_with_its_claims(void)
{
    struct pair pair;
    begin(&pair);
    claim(&pair.a, "v", CLAIM_MOVING, 2);
    claim(&pair.b, "v", CLAIM_GONE, 3);
    claim(&pair.b, "w", CLAIM_LIVE, 3);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OWNER(&pair.a, "v", "", 3);
    CHECK_CODE(forget(&pair.b, "w"), CODE_FAILED_PRECONDITION);
    CHECK_OK(forget(&pair.b, "v"));
    CHECK_OK(forget(&pair.b, "v"));
    CHECK_NUMBER(count_rows(pair.rows, "claim/"), 0);
    CHECK_NUMBER(count_rows(pair.rows, "owner/"), 1);
    CHECK_OWNER(&pair.a, "v", "", 0);
    end(&pair);
}

static void
a_member_is_stored_once(void)
{
    struct pair pair;
    uint64_t before, after;
    begin(&pair);
    CHECK_NUMBER(count_rows(pair.a.own, "member/b"), 1);
    CHECK_OK(store_revision(pair.a.own, &before));
    CHECK_OK(pair.a.it->add_member(pair.a.owners, "b"));
    restart_node(&pair.a);
    CHECK_OK(pair.a.it->add_member(pair.a.owners, "b"));
    CHECK_OK(store_revision(pair.a.own, &after));
    CHECK_NUMBER(after, before);
    CHECK_NUMBER(pair.a.way.calls, 0);
    end(&pair);
}

static void
hundreds_of_members_are_announced(void)
{
    struct pair pair;
    char id[257];
    begin(&pair);
    for (unsigned i = 0; i < 600; i++) {
        memset(id, 'n', 256);
        snprintf(id + 240, 17, "%016u", i);
        CHECK_OK(pair.a.it->add_member(pair.a.owners, id));
        CHECK_OK(owners_remove_member(pair.a.owners, id));
    }
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_NUMBER(count_rows(pair.rows, "known/"), 602);
    CHECK_OWNER(&pair.b, "v", "", 0);
    end(&pair);
}

/* A handle without a home: the row is that of a volume of this handle and of some home. */
static void
the_key_of_a_handle_without_a_home_is_found(void)
{
    struct pair pair;
    struct arena arena AUTO(arena_clear);
    struct owner owner;
    const char *key;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    begin(&pair);
    CHECK_CODE(pair.a.it->find_key(pair.a.it->context, "v", &arena, &key), CODE_UNAVAILABLE);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_OK(owners_renew(pair.b.owners));
    CHECK_OK(pair.a.it->find_key(pair.a.it->context, "v", &arena, &key));
    CHECK_TEXT(key, "");
    CHECK_OK(swap(&pair.b, "v@home", "", 0, "b"));
    CHECK_OK(swap(&pair.b, "vv@home", "", 0, "b"));
    CHECK_OK(pair.a.it->find_key(pair.a.it->context, "v", &arena, &key));
    CHECK_TEXT(key, "v@home");
    CHECK_OK(owners_peek(pair.rows, "local", "v", &owner));
    CHECK_TEXT(owner.node_id, "b");
    CHECK_OK(swap(&pair.a, "v@other", "", 0, "a"));
    CHECK_OWNER(&pair.a, "v@home", "b", 1);
    CHECK_OWNER(&pair.b, "v@other", "a", 1);
    CHECK_CODE(pair.a.it->find_key(pair.a.it->context, "v", &arena, &key),
               CODE_FAILED_PRECONDITION);
    end(&pair);
}

static void
damaged_rows_are_errors(void)
{
    struct pair pair;
    begin_announced(&pair);
    CHECK_OK(swap(&pair.b, "v", "", 0, "b"));
    struct arena arena AUTO(arena_clear);
    struct store_list list;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_OK(store_list(pair.rows, "owner/", NULL, 0, &arena, &list));
    const struct store_change damage = {list.entries[0].key, (const uint8_t *)"\xff", 1, STORE_ANY};
    CHECK_OK(store_write(pair.rows, &damage, 1, NULL));
    CHECK_CODE(read_owner(&pair.a, "v", &(struct owner){0}), CODE_DATA_LOSS);
    const struct store_change text = {"incarnation", (const uint8_t *)"../x", 4, STORE_ANY};
    CHECK_OK(store_write(pair.rows, &text, 1, NULL));
    CHECK_SAYS(owners_renew(pair.a.owners), CODE_DATA_LOSS, "remove it");
    end(&pair);
}

int
main(void)
{
    the_first_node_makes_an_incarnation_and_others_join_it();
    a_node_that_has_not_announced_gets_no_answer();
    a_read_costs_two_round_trips();
    one_of_two_swaps_is_made();
    a_swap_that_another_one_overtakes_has_no_effect();
    a_swap_in_doubt_is_an_error_and_may_be_made_later();
    connections_do_not_see_each_other();
    handles_and_ids_that_do_not_fit_are_refused();
    rows_are_listed_page_by_page();
    a_router_may_look_before_anything_is_announced();
    a_deleted_volume_is_forgotten_with_its_claims();
    a_member_is_stored_once();
    hundreds_of_members_are_announced();
    the_key_of_a_handle_without_a_home_is_found();
    damaged_rows_are_errors();
    return check_report("owners");
}
