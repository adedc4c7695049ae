/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of owners.h in the cluster store: their keys and values. docs/cluster.md lists them.
 * What may be concluded from a row, the callers know.
 */
#ifndef CLUSTER_OWNER_ROWS_H
#define CLUSTER_OWNER_ROWS_H

#include "cluster/name_set.h"
#include "cluster/owners.h"

#define INCARNATION_SIZE 33 /* 128 random bits in hexadecimal, and the NUL */

/* The rows of one connection in one incarnation. */
struct owner_rows {
    struct store *store;
    const char *connection;
    char incarnation[INCARNATION_SIZE];
};

/* INVALID_ARGUMENT: it cannot be part of a key. */
MUST_CHECK struct error *owner_rows_check_handle(const char *handle);
MUST_CHECK struct error *owner_rows_check_node_id(const char *node_id);

/* ---- incarnations ---- */

/* Empty: the registry has none. */
MUST_CHECK struct error *owner_rows_read_incarnation(struct store *store,
                                                     char out[INCARNATION_SIZE]);
/* No effect if there is one. */
MUST_CHECK struct error *owner_rows_make_incarnation(struct store *store);

/* ---- owners ---- */

struct owner_row {
    struct owner owner;
    uint64_t revision; /* STORE_ABSENT: there is no row; the owner is (home, 0) then */
};

MUST_CHECK struct error *owner_rows_read(const struct owner_rows *rows, const char *handle,
                                         struct owner_row *out);
/* The owner is of the row. At epoch 0 it has no name. DATA_LOSS: the row is damaged. */
MUST_CHECK struct error *owner_rows_unpack(const struct store_entry *entry, struct owner *out);
/* The change of a write, in the arena; `owner` NULL: removes the row. */
struct store_change owner_rows_change(const struct owner_rows *rows, const char *handle,
                                      const struct owner *owner, uint64_t expected,
                                      struct arena *arena);
/*
 * The key of a volume (volumes/move_keys.h) that has a row, for its handle, which has no home; "":
 * none has. In the arena. FAILED_PRECONDITION: several have.
 */
MUST_CHECK struct error *owner_rows_find_key(const struct owner_rows *rows, const char *handle,
                                             struct arena *arena, const char **key);
/*
 * Goes into the same write as a change of an owner to which that owner did not agree (rule 13). In
 * the arena.
 */
struct store_change owner_rows_tell(const struct owner_rows *rows, struct arena *arena);
/* The revision of the last such write; 0: there was none. */
MUST_CHECK struct error *owner_rows_read_told(const struct owner_rows *rows, uint64_t *revision);
/* Prefix of the keys of all owners. */
char *owner_rows_prefix(const struct owner_rows *rows, struct arena *arena);

/* ---- claims ---- */

/* Announces that the node gives the volume away, takes it over, or had it before. In the arena. */
struct store_change owner_rows_claim(const struct owner_rows *rows, const char *node_id,
                                     const struct claim *claim, struct arena *arena);
/* Adds the handles of all volumes with claims. */
MUST_CHECK struct error *owner_rows_list_claimed(const struct owner_rows *rows,
                                                 struct name_set *handles);
/*
 * All members have announced. Writes the owner that the claims to the volume give (rule 10): if
 * `row` is absent, or is of an earlier epoch than one that such a claim shows to be decided.
 */
MUST_CHECK struct error *owner_rows_settle(const struct owner_rows *rows, const char *handle,
                                           const struct owner_row *row);
MUST_CHECK struct error *owner_rows_remove_claims(const struct owner_rows *rows,
                                                  const char *handle);

/* ---- for member_rows.c ---- */

/* `name`: the rest of the key. */
typedef struct error *owner_rows_visit(void *context, const char *name,
                                       const struct store_entry *entry);
/* Visits all rows whose key begins with the prefix. An error of the visit ends it. */
MUST_CHECK struct error *owner_rows_walk(struct store *store, const char *prefix,
                                         owner_rows_visit *visit, void *context);
/* DATA_LOSS. */
MUST_CHECK NEVER_NULL struct error *owner_rows_damaged(const struct store_entry *entry);

#endif
