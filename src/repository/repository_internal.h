/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the repository share. */
#ifndef REPOSITORY_REPOSITORY_INTERNAL_H
#define REPOSITORY_REPOSITORY_INTERNAL_H

#include "repository/locations.h"
#include "repository/repository.h"
#include "store/cache_db.h"

struct repository {
    struct objects *objects;
    struct sealing *sealing;
    struct locations *locations;
    const struct log *log;
    struct repository_roster *roster; /* or NULL */
    unsigned threads;
    char *cache_directory;    /* or NULL */
    struct cache_db *records; /* of snapshots, by name; NULL: none are kept */
    uint8_t chunker_secret[32];
    char id[REPOSITORY_NAME_BYTES];
    atomic_bool has_damaged_index; /* some chunks may be there and are not found */
};

/* Seals the bytes as one object. */
MUST_CHECK struct error *repository_seal(const struct sealing *sealing, enum object_kind kind,
                                         const void *bytes, size_t size, struct buffer *out);

/* Seals, names by SHA-256 and puts. */
MUST_CHECK struct error *repository_put(struct repository *repository, enum object_kind kind,
                                        const void *bytes, size_t size, struct object_name *name);

/*
 * Reads, checks and opens an object that is one piece; replaces `out`. Packs, indexes, snapshots
 * and garbage are checked against their names. NOT_FOUND, or DATA_LOSS with the object's key.
 */
MUST_CHECK struct error *repository_load(struct repository *repository, enum object_kind kind,
                                         const struct object_name *name, struct buffer *out);

/* All bytes of an object as they are; checks the name as repository_load does. */
MUST_CHECK struct error *repository_load_bytes(struct repository *repository, enum object_kind kind,
                                               const struct object_name *name, struct buffer *out);

/*
 * All bytes of a pack, also if they do not have its name: its chunks have tags of their own.
 * `damage` says what is wrong then, else it is NULL; the caller frees it.
 */
MUST_CHECK struct error *repository_load_pack(struct repository *repository,
                                              const struct object_name *name, struct buffer *out,
                                              struct error **damage);

/* The local index becomes as the repository's. */
MUST_CHECK struct error *repository_sync(struct repository *repository);

/*
 * The same, and looks which packs are lost: see locations_sync_packs. `garbage` does not count; it
 * may be NULL.
 */
MUST_CHECK struct error *repository_sync_packs(struct repository *repository,
                                               const struct id_set *garbage, size_t *lost);

/* Opens `records`, if there is a cache directory that works and that no other process uses. */
void repository_open_records(struct repository *repository);

/* CANCELLED if it is to end. `progress` may be NULL. */
MUST_CHECK struct error *repository_check_cancel(const struct repository_progress *progress);
/* The same, after a report. */
MUST_CHECK struct error *repository_report(const struct repository_progress *progress,
                                           uint64_t done, uint64_t total);

#endif
