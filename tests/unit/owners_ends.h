/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of owners share: a way to the cluster store that belongs to one node and on which
 * anything may happen, and short ways to make nodes.
 */
#ifndef UNIT_OWNERS_ENDS_H
#define UNIT_OWNERS_ENDS_H

#include "base/memory.h"
#include "cluster/owners.h"
#include "store/store_ops.h"
#include "store_ends.h"

static __attribute__((unused)) const struct log quiet = {.level = LOG_ERROR + 1, .fd = 2};

/* ---- a way to the rows ---- */

enum fate { FATE_DONE, FATE_NOT_DONE, FATE_IN_DOUBT };

struct way {
    struct store base; /* must be first */
    struct store *rows;
    unsigned calls;
    /* Before each call. NULL: all is done. `changes` is NULL for a read. */
    enum fate (*before)(void *context, const struct store_change *changes, size_t count);
    void *context;
};

static inline struct error *
way_fails(const struct way *way, enum fate fate)
{
    (void)way;
    struct error *error = error_new(CODE_UNAVAILABLE, "the registry does not answer");
    error->in_doubt = fate == FATE_IN_DOUBT;
    return error;
}

static inline enum fate
way_begin(struct way *way, const struct store_change *changes, size_t count)
{
    way->calls++;
    return way->before ? way->before(way->context, changes, count) : FATE_DONE;
}

static inline struct error *
way_get(struct store *base, const char *key, struct arena *arena, struct store_entry *out)
{
    struct way *way = (struct way *)base;
    enum fate fate = way_begin(way, NULL, 0);
    return fate ? way_fails(way, fate) : store_get(way->rows, key, arena, out);
}

static inline struct error *
way_write(struct store *base, const struct store_change *changes, size_t count, uint64_t *revision)
{
    struct way *way = (struct way *)base;
    CHECK(count <= 16);
    enum fate fate = way_begin(way, changes, count);
    return fate ? way_fails(way, fate) : store_write(way->rows, changes, count, revision);
}

static inline struct error *
way_list(struct store *base, const char *prefix, const char *after, size_t limit,
         struct arena *arena, struct store_list *out)
{
    struct way *way = (struct way *)base;
    enum fate fate = way_begin(way, NULL, 0);
    return fate ? way_fails(way, fate) : store_list(way->rows, prefix, after, limit, arena, out);
}

static __attribute__((unused)) const struct store_ops way_ops = {
    .scheme = "way",
    .is_unwatched = true,
    .get = way_get,
    .write = way_write,
    .list = way_list,
};

static inline struct store *
open_memory(void)
{
    struct store *store = NULL;
    CHECK_OK(store_open("memory:", NULL, &store));
    return store;
}

/* The registry loses its data. */
static inline void
lose_rows(struct store *rows)
{
    struct arena arena AUTO(arena_clear);
    struct store_list list;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_OK(store_list(rows, "", NULL, 0, &arena, &list));
    for (size_t i = 0; i < list.count; i++) {
        const struct store_change change = {.key = list.entries[i].key, .expected = STORE_ANY};
        CHECK_OK(store_write(rows, &change, 1, NULL));
    }
}

#endif
