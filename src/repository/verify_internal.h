/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of verify:
 *
 *     verify.c           the order of things, and the index
 *     verify_packs.c     whether packs are there and sound
 *     verify_uses.c      which snapshots are affected
 *     verify_work.c      objects of writers, and garbage
 *     verify_findings.c  telling it
 */
#ifndef REPOSITORY_VERIFY_INTERNAL_H
#define REPOSITORY_VERIFY_INTERNAL_H

#include "repository/repository_internal.h"
#include "store/cache_db.h"

struct verify {
    struct repository *repository;
    struct repository_verify *request;
    struct locations *locations;
    /*
     * 'p' name of a pack: its size (4) and whether it is there (1); 'b' name: the pack is bad;
     * 'c' name, offset (4): the chunk there is bad; 'm' name: the pack is missing, if an index
     * still names it; 'x' name: the index object is reported; 's' id: this part of a manifest is
     * sound, with all that it lists.
     */
    struct cache_db *facts;
    bool has_checked;     /* all packs; those that are new are not */
    uint64_t done, total; /* objects: packs, then snapshots */
};

void verify_report(struct verify *verify, enum object_kind kind, const struct object_name *name,
                   const char *snapshot, const char *text);
/* Takes an error about an object: DATA_LOSS and NOT_FOUND are findings, others stay errors. */
MUST_CHECK struct error *verify_take(struct verify *verify, enum object_kind kind,
                                     const struct object_name *name, struct error *error);

/* One more object is done. CANCELLED. */
MUST_CHECK struct error *verify_count(struct verify *verify);

/* Reads what is new in the index. */
MUST_CHECK struct error *verify_sync(struct verify *verify);
/* The same, at the beginning: it also looks which packs are lost. */
MUST_CHECK struct error *verify_sync_packs(struct verify *verify);
MUST_CHECK struct error *verify_packs(struct verify *verify);
MUST_CHECK struct error *verify_uses(struct verify *verify);
MUST_CHECK struct error *verify_work(struct verify *verify);

#endif
