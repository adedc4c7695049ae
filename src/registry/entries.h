/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is registered, as rows of a store: "registry/PATH" and a record.
 *
 * A time to live is an absolute time in the record, and not a lease of the store: what has expired
 * stays until it is removed or renewed, so that whoever asks for it can be told since when. Paths
 * are normal (path.h). From threads that may wait.
 */
#ifndef REGISTRY_ENTRIES_H
#define REGISTRY_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

#define ENTRIES_PREFIX "registry/"

struct entry {
    const char *path;
    const char *value;
    int64_t registered_ms; /* since 1970: when it was set, or renewed, last */
    int64_t expires_ms;    /* 0: never */
    uint64_t revision;
};

static inline bool
entry_is_expired(const struct entry *entry, int64_t now_ms)
{
    return entry->expires_ms && entry->expires_ms <= now_ms;
}

/* Durable when it returns. An empty value removes the entry. Fills in the revision. */
MUST_CHECK struct error *entries_set(struct store *store, struct entry *entry);

/*
 * Of a row, or of a change: a removed entry has value "". What is in the arena, or the row, is
 * shared.
 */
MUST_CHECK struct error *entries_unpack(const struct store_entry *row, struct arena *arena,
                                        struct entry *out);

struct entry_page {
    struct entry *entries; /* by path, byte by byte */
    size_t count;
    bool has_more;
};

/*
 * The entry at the path and all below it ("": all), from behind `after` on (NULL: from the first),
 * at most `limit` of them.
 */
MUST_CHECK struct error *entries_list(struct store *store, const char *path, const char *after,
                                      size_t limit, struct arena *arena, struct entry_page *out);

/* All of them, a page at a time; what `visit` gets lives until it returns. */
MUST_CHECK struct error *entries_walk(struct store *store, const char *path,
                                      struct error *(*visit)(void *context,
                                                             const struct entry *entry),
                                      void *context);

#endif
