/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the rules of owners share: nodes with claims, two of them that know each other, and short ways to ask. */
#ifndef UNIT_OWNERS_PAIR_H
#define UNIT_OWNERS_PAIR_H

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

static inline struct error *
walk(void *context, struct error *(*take)(void *taker, const struct claim *claim), void *taker)
{
    struct node *node = context;
    struct error *error = NULL;
    node->walks++;
    for (size_t i = 0; !error && i < node->claim_count; i++)
        error = take(taker, &node->claims[i]);
    return error;
}

static inline void
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

static inline struct node
make_node(const char *id, struct store *rows)
{
    return (struct node){.id = id, .way = {{&way_ops}, rows}, .own = open_memory()};
}

static inline void
restart_node(struct node *node)
{
    owners_free(node->owners);
    start_node(node);
}

static inline void
end_node(struct node *node)
{
    owners_free(node->owners);
    store_close(node->own);
}

static inline void
claim(struct node *node, const char *handle, enum claim_state state, uint64_t epoch)
{
    node->claims[node->claim_count++] = (struct claim){handle, state, epoch};
}

/* The volume was the node's; then this other one was the owner. */
static inline void
claim_left(struct node *node, const char *handle, const char *owner, uint64_t epoch)
{
    node->claims[node->claim_count++] = (struct claim){handle, CLAIM_LEFT, epoch, .node_id = owner};
}

/* ---- two nodes that know each other ---- */

struct pair {
    struct store *rows;
    struct node a, b;
};

static inline void
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

static inline void
begin_announced(struct pair *pair)
{
    begin(pair);
    CHECK_OK(owners_renew(pair->a.owners));
    CHECK_OK(owners_renew(pair->b.owners));
}

static inline void
end(struct pair *pair)
{
    end_node(&pair->a);
    end_node(&pair->b);
    store_close(pair->rows);
}

/* ---- short ways ---- */

static inline struct error *
read_owner(struct node *node, const char *handle, struct owner *out)
{
    return node->it->read(node->it->context, handle, out);
}

static inline void
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

static inline struct error *
swap(struct node *node, const char *handle, const char *from, uint64_t epoch, const char *to)
{
    struct owner before = {.epoch = epoch}, after = {.epoch = epoch + 1};
    strcpy(before.node_id, from);
    strcpy(after.node_id, to);
    return node->it->swap(node->it->context, handle, &before, &after);
}

static inline struct error *
forget(struct node *node, const char *handle)
{
    return node->it->forget(node->it->context, handle);
}

/* "a b c"; an error is checked by the caller. */
static inline struct error *
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

static inline size_t
count_rows(struct store *rows, const char *prefix)
{
    struct arena arena AUTO(arena_clear);
    struct store_list list;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_OK(store_list(rows, prefix, NULL, 0, &arena, &list));
    return list.count;
}

/* The write is late: the test makes it when it likes. */
struct late {
    struct store_change change;
    char key[512];
    uint8_t value[512];
};

static inline enum fate
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

#endif
