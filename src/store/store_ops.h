/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of a store, for this room only. A store is one file that ends in a `const struct
 * store_ops`, and one line in the table of store.c.
 *
 * store.c checks keys, values and counts before it calls a function here. All may be called from
 * many threads at the same time.
 */
#ifndef STORE_STORE_OPS_H
#define STORE_STORE_OPS_H

#include <time.h>

#include "store/history.h"
#include "store/store.h"

struct store_ops {
    const char *scheme;
    const char *form;  /* the form of its URLs, for messages */
    bool is_unwatched; /* its history stays empty: nobody can watch it */

    /* `place` is the text after the colon. */
    struct error *(*open)(const char *place, const struct store_options *options,
                          struct store **out);
    void (*close)(struct store *store);
    void (*stop)(struct store *store); /* NULL: nothing waits for long */
    struct error *(*get)(struct store *store, const char *key, struct arena *arena,
                         struct store_entry *out);
    /*
     * Its changes are published in the store's history, in the order of revisions: before it
     * returns, or soon after if others write too.
     */
    struct error *(*write)(struct store *store, const struct store_change *changes, size_t count,
                           uint64_t *revision);
    struct error *(*list)(struct store *store, const char *prefix, const char *after, size_t limit,
                          struct arena *arena, struct store_list *out);
    /* Never less than that of an entry that was read before. */
    struct error *(*revision)(struct store *store, uint64_t *revision);

    /* NULL: there is nothing that could be damaged. */
    struct error *(*check)(struct store *store);
    struct error *(*set_aside)(const char *place, struct arena *arena, const char **moved_to);
};

/* The first member of each store's own struct. */
struct store {
    const struct store_ops *ops;
    struct history history;
};

extern const struct store_ops sqlite_store_ops;
extern const struct store_ops memory_store_ops;
extern const struct store_ops etcd_store_ops;
extern const struct store_ops registry_store_ops;

/* ---- store_ops.c: for the stores ---- */

/* Copies an entry to the arena. `value` may be NULL if its size is 0: that of the copy is not. */
struct store_entry store_copy_entry(struct arena *arena, const char *key, size_t key_size,
                                    const void *value, size_t value_size, uint64_t revision);

/* A list that grows in the arena. `capacity` starts at 0. */
void store_append_entry(struct arena *arena, struct store_list *list, size_t *capacity,
                        struct store_entry entry);

MUST_CHECK NEVER_NULL struct error *store_error_not_found(const char *key);

/*
 * For a store on the network that does not answer: whether one side does not accept the other's
 * identity. Then waiting does not help.
 */
bool store_is_refused(const struct error *error);

/* ABORTED if `found` (STORE_ABSENT: none) is not what the change expects. */
MUST_CHECK struct error *store_check_expected(const struct store_change *change, uint64_t found);

#endif
