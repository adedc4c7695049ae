/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of keys and values in a file, for data that can be made again: an index of what stands
 * elsewhere, or work that is too large for memory. The memory that it uses does not depend on the
 * number of rows. Keys are bytes and are sorted as memcmp(3) sorts them. Safe from any thread.
 */
#ifndef STORE_CACHE_DB_H
#define STORE_CACHE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define CACHE_DB_KEY_MAX 4096u

struct cache_db;

/*
 * Opens the file, or makes it. What is damaged, or not a cache, is removed and made anew: the
 * caller finds an empty table. `memory_kib` is for pages of the file. After a crash of the process
 * or of the machine, the table is as it was at some cache_db_commit. `*out` is NULL if another
 * process, or another cache_db of this one, has it open.
 */
MUST_CHECK struct error *cache_db_open(const char *path, unsigned memory_kib,
                                       struct cache_db **out);

/* A table in a file without a name in the directory: it ends with the process or cache_db_close. */
MUST_CHECK struct error *cache_db_open_temporary(const char *directory, unsigned memory_kib,
                                                 struct cache_db **out);

/* Commits. NULL is fine. */
void cache_db_close(struct cache_db *db);
/* For `struct cache_db *db AUTO(cache_db_cleanup) = NULL`. */
void cache_db_cleanup(struct cache_db **db);

/* Changes are collected and committed together; this commits now. */
MUST_CHECK struct error *cache_db_commit(struct cache_db *db);

/* Replaces the value if there is one. */
MUST_CHECK struct error *cache_db_put(struct cache_db *db, const void *key, size_t key_size,
                                      const void *value, size_t value_size);
/* `*is_new`: the key was not there, and is now; otherwise nothing changes. */
MUST_CHECK struct error *cache_db_add(struct cache_db *db, const void *key, size_t key_size,
                                      const void *value, size_t value_size, bool *is_new);
/* A key that is not there is fine. */
MUST_CHECK struct error *cache_db_delete(struct cache_db *db, const void *key, size_t key_size);

/* A value of exactly `size` bytes. `*found` is false for one of another size, too. */
MUST_CHECK struct error *cache_db_get(struct cache_db *db, const void *key, size_t key_size,
                                      void *value, size_t size, bool *found);
/* A value of any size; replaces what is in `value`. */
MUST_CHECK struct error *cache_db_read(struct cache_db *db, const void *key, size_t key_size,
                                       struct buffer *value, bool *found);

MUST_CHECK struct error *cache_db_count(struct cache_db *db, uint64_t *out);
/* Removes all rows. */
MUST_CHECK struct error *cache_db_drop(struct cache_db *db);

/*
 * Walks over the rows in the order of their keys. The caller puts the key to begin at into `key`
 * (empty: all rows); cache_db_next fills key and value with the first row at or behind it, and the
 * next call gives the row behind that. Rows may change between the calls.
 *
 *     struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
 *     while (!(error = cache_db_next(db, &walk)) && walk.found)
 */
struct cache_db_walk {
    struct buffer key;
    struct buffer value;
    bool found;
    bool has_begun;
};

MUST_CHECK struct error *cache_db_next(struct cache_db *db, struct cache_db_walk *walk);
void cache_db_walk_clear(struct cache_db_walk *walk);

#endif
