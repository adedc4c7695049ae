/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of volumes in the cluster store: the rules of docs/cluster.md, one case each. */
#include "owners_ends.h"

#define MAX_CLAIMS 64

struct node {
    const char *id;
    struct way way;
    struct store *own;
    struct claim claims[MAX_CLAIMS];
    size_t claim_count;
    unsigned walks;
    struct owners *owners;
    const struct ownership *it;
};

static struct error *
walk(void *context, struct error *(*take)(void *taker, const struct claim *claim), void *taker)
{
    struct node *node = context;
    struct error *error = NULL;
    node->walks++;
    for (size_t i = 0; !error && i < node->claim_count; i++)
        error = take(taker, &node->claims[i]);
    return error;
}

static void
start_node(struct node *node)
{
    node->owners = owners_new(&(struct owners_options){
        .rows = &node->way.base,
        .own = node->own,
        .connection = "local",
        .node_id = node->id,
        .claims = {walk, node},
        .log = &quiet,
    });
    node->it = owners_interface(node->owners);
}

static struct node
make_node(const char *id, struct store *rows)
{
    return (struct node){.id = id, .way = {{&way_ops}, rows}, .own = open_memory()};
}

static void
restart_node(struct node *node)
{
    owners_free(node->owners);
    start_node(node);
}

static void
end_node(struct node *node)
{
    owners_free(node->owners);
    store_close(node->own);
}

static void
claim(struct node *node, const char *handle, enum claim_state state, uint64_t epoch)
{
    node->claims[node->claim_count++] = (struct claim){handle, state, epoch};
}

/* ---- two nodes that know each other ---- */

struct pair {
    struct store *rows;
    struct node a, b;
};

static void
begin(struct pair *pair)
{
    pair->rows = open_memory();
    pair->a = make_node("a", pair->rows);
    pair->b = make_node("b", pair->rows);
    start_node(&pair->a);
    start_node(&pair->b);
    CHECK_OK(pair->a.it->add_member(pair->a.owners, "b"));
    CHECK_OK(pair->b.it->add_member(pair->b.owners, "a"));
}

static void
begin_announced(struct pair *pair)
{
    begin(pair);
    CHECK_OK(owners_renew(pair->a.owners));
    CHECK_OK(owners_renew(pair->b.owners));
}

static void
end(struct pair *pair)
{
    end_node(&pair->a);
    end_node(&pair->b);
    store_close(pair->rows);
}

/* ---- short ways ---- */

static struct error *
read_owner(struct node *node, const char *handle, struct owner *out)
{
    return node->it->read(node->it->context, handle, out);
}

static void
check_owner(struct node *node, const char *handle, const char *id, uint64_t epoch, int line)
{
    struct owner owner = {.node_id = "none", .epoch = 99};
    check_code(read_owner(node, handle, &owner), CODE_OK, __FILE__, line);
    check_text(owner.node_id, id, __FILE__, line);
    check_number((intmax_t)owner.epoch, (intmax_t)epoch, __FILE__, line);
}

#define CHECK_OWNER(node, handle, id, epoch) check_owner((node), (handle), (id), (epoch), __LINE__)
#define CHECK_UNKNOWN(node, handle, part)                                                          \
    CHECK_SAYS(read_owner((node), (handle), &(struct owner){0}), CODE_UNAVAILABLE, (part))

static struct error *
swap(struct node *node, const char *handle, const char *from, uint64_t epoch, const char *to)
{
    struct owner before = {.epoch = epoch}, after = {.epoch = epoch + 1};
    strcpy(before.node_id, from);
    strcpy(after.node_id, to);
    return node->it->swap(node->it->context, handle, &before, &after);
}

static struct error *
forget(struct node *node, const char *handle)
{
    return node->it->forget(node->it->context, handle);
}

/* "a b c"; an error is checked by the caller. */
static struct error *
list_members(struct node *node, char out[256])
{
    struct arena arena AUTO(arena_clear);
    const char *const *ids;
    size_t count;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = node->it->members(node->it->context, &arena, &ids, &count);
    out[0] = '\0';
    for (size_t i = 0; !error && i < count; i++)
        snprintf(out + strlen(out), 256 - strlen(out), "%s%s", i ? " " : "", ids[i]);
    return error;
}

static size_t
count_rows(struct store *rows, const char *prefix)
{
    struct arena arena AUTO(arena_clear);
    struct store_list list;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_OK(store_list(rows, prefix, NULL, 0, &arena, &list));
    return list.count;
}

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

/* The write is late: the test makes it when it likes. */
struct late {
    struct store_change change;
    char key[512];
    uint8_t value[512];
};

static enum fate
keep_write(void *context, const struct store_change *changes, size_t count)
{
    struct late *late = context;
    if (!changes)
        return FATE_DONE;
    CHECK_NUMBER(count, 1);
    strcpy(late->key, changes->key);
    memcpy(late->value, changes->value, changes->value_size);
    late->change = *changes;
    late->change.key = late->key;
    late->change.value = late->value;
    return FATE_IN_DOUBT;
}

static void
a_swap_in_doubt_is_an_error_and_may_be_made_later(void)
{
    struct pair pair;
    struct late late;
    begin_announced(&pair);
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

/* ---- the registry has lost its data ---- */

static void
live_and_gone_volumes_are_settled_at_once(void)
{
    struct pair pair;
    begin(&pair);
    claim(&pair.a, "home", CLAIM_LIVE, 0);
    claim(&pair.a, "here", CLAIM_LIVE, 3);
    claim(&pair.a, "gone", CLAIM_GONE, 2);
    CHECK_OK(owners_renew(pair.a.owners));
    CHECK_NUMBER(count_rows(pair.rows, "owner/"), 2);
    CHECK_OWNER(&pair.a, "here", "a", 3);
    CHECK_OWNER(&pair.a, "gone", "", 2);
    CHECK_UNKNOWN(&pair.a, "home", "yet: b. Start");
    CHECK_UNKNOWN(&pair.a, "other", "yet: b. Start");
    CHECK_OK(owners_renew(pair.b.owners));
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
    CHECK_OWNER(&pair.a, "v", "a", 1);
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
    live_and_gone_volumes_are_settled_at_once();
    claims_are_settled_when_all_members_have_announced();
    the_members_of_members_are_awaited();
    nobody_waits_for_a_node_that_is_removed();
    a_node_announces_again_to_a_new_incarnation_only();
    a_swap_of_an_old_incarnation_has_no_effect();
    an_answer_of_an_old_incarnation_is_discarded();
    a_read_sees_all_of_an_announcement_or_nothing();
    an_announcement_that_was_interrupted_is_completed();
    a_live_node_does_not_replace_another_owner();
    a_deleted_volume_is_forgotten_with_its_claims();
    a_member_is_stored_once();
    of_two_live_nodes_the_one_with_the_later_epoch_wins();
    hundreds_of_members_are_announced();
    damaged_rows_are_errors();
    return check_report("owners");
}
