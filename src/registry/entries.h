/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the registry as rows of a store: "registry/PATH" and a record.
 *
 * The time to live is stored as an absolute time in the record rather than as a lease: an expired
 * entry is kept until it is removed or renewed, so that an error can say when it expired. Paths are
 * normalized (path.h). All functions may block.
 */
#ifndef REGISTRY_ENTRIES_H
#define REGISTRY_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text_map.h"
#include "store/store.h"

#define ENTRIES_PREFIX "registry/"

struct entry {
    const char *path;
    const char *value;
    struct text_map attributes; /* what others should know of the controller or node */
    int64_t registered_ms;      /* since 1970: when it was last set or renewed */
    int64_t expires_ms;         /* 0: never */
    uint64_t revision;
};

/* Durable when it returns. An empty value removes the entry. Sets the revision. */
MUST_CHECK struct error *entries_set(struct store *store, struct entry *entry);

/* The record of an entry: all of it but the path and the revision. */
uint8_t *entries_pack(const struct entry *entry, struct arena *arena, size_t *size);

/* Reads a record. False: it is damaged. Does not set path and revision. Refers to the arena. */
bool entries_unpack(const uint8_t *record, size_t size, struct arena *arena, struct entry *out);

/* Reads a row, or a change: a removed entry has the value "". Refers to the row and the arena. */
MUST_CHECK struct error *entries_read(const struct store_entry *row, struct arena *arena,
                                      struct entry *out);

struct entry_page {
    struct entry *entries; /* by path, byte by byte */
    size_t count;
    bool has_more;
};

/*
 * Lists the entry at the path and all below it ("": all), after the path `after` (NULL: from the
 * first), at most `limit`.
 */
MUST_CHECK struct error *entries_list(struct store *store, const char *path, const char *after,
                                      size_t limit, struct arena *arena, struct entry_page *out);

/* Calls `visit` for each of them; the entry lives until `visit` returns. */
MUST_CHECK struct error *entries_walk(struct store *store, const char *path,
                                      struct error *(*visit)(void *context,
                                                             const struct entry *entry),
                                      void *context);

#endif
