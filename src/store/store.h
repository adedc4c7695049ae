/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The durable record of what exists: keys and values with revisions. The store is the authority on
 * volumes, snapshots and operations: data without an entry is garbage, and an entry is trusted.
 *
 * Keys are text, ordered byte by byte ("volume/01h...", at most 512 bytes). Values are bytes, at
 * most 1 MiB. Every write gets the next revision of the whole store; an entry has the revision of
 * the write that made it.
 *
 * All functions may be called from any thread except the loop's, and may block. A write is durable
 * when it returns: a crash right after it loses nothing. Concurrent writes share one commit.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define STORE_MAX_KEY 512
#define STORE_MAX_VALUE (1u << 20)
#define STORE_MAX_CHANGES 128      /* of one write */
#define STORE_MAX_WRITE (4u << 20) /* bytes of all its values */

struct store;
struct runtime;
struct tls_context;

struct store_entry {
    const char *key;
    const uint8_t *value;
    size_t value_size;
    uint64_t revision;
};

/* What a change expects of the entry with its key. */
#define STORE_ANY UINT64_MAX /* anything */
#define STORE_ABSENT 0       /* no entry */

struct store_change {
    const char *key;
    const uint8_t *value; /* NULL: deletes */
    size_t value_size;
    uint64_t expected; /* STORE_ANY, STORE_ABSENT, or the revision that it must have */
};

/* What a store on the network needs; NULL: none will be opened. */
struct store_options {
    struct runtime *runtime;
    struct tls_context *tls; /* NULL: plaintext. Must outlive the store. */
};

/*
 * "sqlite:DIRECTORY" (created if missing), "memory:", or one that needs options:
 * "etcd://HOST:PORT[,HOST:PORT...][/PREFIX]", or "registry://HOST:PORT[/PREFIX]" or
 * "registry://unix:///PATH", the rows that a registry keeps for the cluster. FAILED_PRECONDITION if
 * it is damaged, written by a newer program, or in use by another process; the message tells what
 * to do. PERMISSION_DENIED and others: etcd or the registry answers, and refuses us.
 *
 * A store on the network opens even while nobody answers: then everything is UNAVAILABLE, at once,
 * until somebody does. Checks that were not possible yet are made with the first answer.
 *
 * A store on a registry has lower limits: keys of 504 bytes with the prefix, values of 64 KiB,
 * writes of 16 changes. It cannot be watched, and the prefix of a list must be UTF-8.
 */
MUST_CHECK struct error *store_open(const char *url, const struct store_options *options,
                                    struct store **out);
void store_close(struct store *store);

/*
 * Calls that wait for the network return UNAVAILABLE, now and from now on. Called before joining
 * threads that may be waiting. Any thread. NULL is fine.
 */
void store_stop(struct store *store);

/* NOT_FOUND if there is none. The entry lives in the arena. */
MUST_CHECK struct error *store_get(struct store *store, const char *key, struct arena *arena,
                                   struct store_entry *out);

/* The same for an entry that may be missing: `*found` tells. */
MUST_CHECK struct error *store_find(struct store *store, const char *key, struct arena *arena,
                                    struct store_entry *out, bool *found);

/*
 * Makes all of the changes or none; each has another key. ABORTED if one of them does not find what
 * it expects: read again and retry. Deleting a missing entry is neither an error nor a change.
 * `*revision` (may be NULL) is that of the write.
 *
 * RESOURCE_EXHAUSTED: no space left; nothing is changed, and the same write succeeds once there is
 * space. INTERNAL: an I/O error, the message names the file; the write is not visible, but may
 * appear after a power failure. DATA_LOSS: the store is damaged. UNAVAILABLE: etcd or the registry
 * cannot be reached, or has not answered; if the error is in_doubt, the write may have been made or
 * may yet be.
 */
MUST_CHECK struct error *store_write(struct store *store, const struct store_change *changes,
                                     size_t count, uint64_t *revision);

struct store_list {
    struct store_entry *entries; /* sorted by key */
    size_t count;
    bool has_more;
};

/*
 * Entries whose key begins with `prefix` and is greater than `after` (NULL: from the first), at
 * most `limit` (0: all). To continue, call again with the last key; entries that appear or
 * disappear in between do not affect the others.
 */
MUST_CHECK struct error *store_list(struct store *store, const char *prefix, const char *after,
                                    size_t limit, struct arena *arena, struct store_list *out);

/* ---- watching ---- */

struct store_watch;

/*
 * Watches changes of keys with the prefix, in order, from the revision after `since` on.
 * OUT_OF_RANGE: that is too long ago (only the latest are kept, and none from before the store was
 * opened), or of another store; list again. To miss nothing: read the revision, list, and watch
 * since that revision; a change made in between comes twice.
 *
 * Changes arrive when they are made, except with etcd: there they arrive a little later, even those
 * of this process.
 *
 * A watch is for one thread at a time, and must be closed before its store. UNIMPLEMENTED: a store
 * on a registry cannot be watched.
 */
MUST_CHECK struct error *store_watch_open(struct store *store, const char *prefix, uint64_t since,
                                          struct store_watch **out);

/*
 * Waits for the next change, for at most `timeout_ms`; DEADLINE_EXCEEDED if there was none. A
 * deleted entry has value NULL. OUT_OF_RANGE: the watch has fallen too far behind; close it and
 * list again. UNAVAILABLE: there was none, and etcd does not answer at the moment; the watch is
 * valid, and continues when it does.
 */
MUST_CHECK struct error *store_watch_next(struct store_watch *watch, uint32_t timeout_ms,
                                          struct arena *arena, struct store_entry *out);
void store_watch_close(struct store_watch *watch);

/* The revision of the last write, also after a restart; 0: nothing was ever written. */
MUST_CHECK struct error *store_revision(struct store *store, uint64_t *revision);

/* ---- for skycap doctor ---- */

/*
 * Reads everything, however long that takes (opening makes only a brief check). DATA_LOSS tells
 * what is wrong.
 */
MUST_CHECK struct error *store_check(struct store *store);

/*
 * Renames the files of a store that nobody has open, whatever its state, so that store_open makes a
 * new one. `*moved_to`: where it is now, in the arena; NULL if there was nothing.
 */
MUST_CHECK struct error *store_set_aside(const char *url, struct arena *arena,
                                         const char **moved_to);

#endif
