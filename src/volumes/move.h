/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a volume to another node. The rules are in docs/cluster.md ("How a move works"); comments
 * refer to them by their numbers.
 *
 * The target does the work, as an operation (move_receive.c): it copies most of the data while the
 * volume is in use, asks the source to begin (move_source.c), fetches what has changed since, and
 * asks the registry for the volume. Both sides act on what the registry shows (move_decide.c). What
 * a crash or a lost node leaves undecided, a thread of the engine completes (move_upkeep.c).
 */
#ifndef VOLUMES_MOVE_H
#define VOLUMES_MOVE_H

#include "volumes/held.h"
#include "volumes/move_cluster.h"

#define MOVE_VOLUME "move-volume" /* the kind of operation */
/* Without progress while nobody can use the volume: then either node gives the move up (rule 6). */
#define MOVE_PATIENCE_MS 60000u

/* UNAVAILABLE: the node is in no cluster, or has not joined it yet. */
MUST_CHECK struct error *move_find_cluster(struct engine *engine, const struct move_cluster **out);

/* ---- at the source: move_source.c ---- */

/* `key`, here and below: see move_keys.h. */
MUST_CHECK struct error *move_describe(struct engine *engine, const char *key, struct arena *arena,
                                       struct move_offer *out);

/*
 * Writes MOVING to the target (rule 2), unless it is that already. FAILED_PRECONDITION: it is in
 * use. UNAVAILABLE: the registry does not answer. `*out` is the row.
 */
MUST_CHECK struct error *move_begin(struct engine *engine, const char *key, const char *to,
                                    struct arena *arena, volume_record **out);

/* ---- on both sides: move_decide.c ---- */

enum move_outcome {
    MOVE_UNDECIDED,
    MOVE_HERE,    /* the volume is this node's */
    MOVE_AWAY,    /* it is another node's */
    MOVE_DELETED, /* it is nobody's */
};

/* What to ask the registry for before it is read. */
enum move_request {
    MOVE_ASK_NOTHING,
    MOVE_ASK_SWAP,    /* what the row is for: the move (rule 4) or the deletion (rule 7) */
    MOVE_ASK_GIVE_UP, /* rule 6 */
};

/*
 * Asks, reads, and acts on the answer (rule 5), with the volume's lock held. NOT_FOUND: there is no
 * row.
 */
MUST_CHECK struct error *move_decide(struct engine *engine, const char *key,
                                     enum move_request request, enum move_outcome *out);

/* The same for a volume that is held already. */
MUST_CHECK struct error *move_decide_held(struct engine *engine, struct held_volume *held,
                                          enum move_request request, struct arena *arena,
                                          enum move_outcome *out);

/* The volume is another node's: writes LEFT, and removes the data. */
MUST_CHECK struct error *move_leave_held(struct engine *engine, struct held_volume *held,
                                         const struct owner *owner, struct arena *arena);

/* ABORTED: a copy of it is in progress, also after the wait. Gone already is success. */
MUST_CHECK struct error *move_remove_data(struct engine *engine, const volume_record *volume,
                                          unsigned wait_ms);

/* ---- deleting: move_delete.c ---- */

/*
 * Deletes a volume that is held and unused, and is moving or has moved before (rule 7).
 * UNAVAILABLE: it has moved away, or the registry does not answer.
 */
MUST_CHECK struct error *move_delete(struct engine *engine, struct held_volume *held,
                                     struct arena *arena);

/*
 * What this node has of a volume. With `is_gone` it is deleted, and a row that only tells where it
 * went is removed.
 */
MUST_CHECK struct error *move_ask(struct engine *engine, const char *key, bool is_gone,
                                  struct move_answer *out);

/*
 * Whether a volume that has LEFT this node still exists; updates the record's node. If it does not,
 * removes the row. The caller has locked its name.
 */
MUST_CHECK struct error *move_look_for(struct engine *engine, volume_record *volume,
                                       struct arena *arena, bool *exists);

/* ---- at the target: move_receive.c ---- */

struct move_result {
    bool was_there;
    uint64_t unavailable_ms;
};

struct move_order {
    const char *handle;
    bool for_publish;
    uint64_t bytes_per_second; /* that are fetched at most; 0: no limit */
    bool not_in_use;           /* a volume in use is not waited for */
};

/*
 * Moves the volume here, and waits for that for `wait_ms`; then ABORTED with the percentage.
 * `for_publish`: FAILED_PRECONDITION unless the volume follows its users and is not in use.
 * `not_in_use`: FAILED_PRECONDITION if it is in use, or is when it is to be given up there.
 * NOT_FOUND: there is no such volume.
 */
MUST_CHECK struct error *move_receive(struct engine *engine, const struct move_order *order,
                                      uint64_t wait_ms, struct move_result *out);

/* Called at start: continues moves to this node. */
MUST_CHECK struct error *move_resume_all(struct engine *engine);

/* ---- a lost node: move_recover.c ---- */

/* The newest snapshot on this node of a volume. In the arena. */
struct move_copy {
    snapshot_record *snapshot;
    const char *owner;       /* the node that has the volume; "": nobody has it */
    bool is_lost;            /* that node, or its store */
    bool is_only_store_lost; /* the node is up */
    bool is_deleted;         /* the volume, as far as the snapshot and the registry can tell */
    bool is_before_recovery; /* it has what was written before the volume was recovered last */
};
struct move_copies {
    struct move_copy *items; /* those of volumes whose nodes are lost first */
    size_t count;
};
/*
 * `volume`: a handle, or a name, which several volumes may have: one copy of each. Snapshots of
 * those whose nodes are lost are kept for a day. NOT_FOUND: this node has none.
 */
MUST_CHECK struct error *move_find_copies(struct engine *engine, const char *volume,
                                          struct arena *arena, struct move_copies *out);

/*
 * Makes the snapshot the volume, if the node that has the volume is lost, or its store is:
 * FAILED_PRECONDITION otherwise. Durable when it returns.
 */
MUST_CHECK struct error *move_recover(struct engine *engine, const char *snapshot);

/* ---- the lost node is back: move_return.c ---- */

/*
 * Finds volumes of this node that were recovered by others while it was away; each is SUPERSEDED
 * then. `*is_complete`: this need not be repeated.
 */
MUST_CHECK struct error *move_reconcile(struct engine *engine, bool *is_complete);
/* This was done since the node was away the last time. */
bool move_is_reconciled(struct engine *engine);

/*
 * Called before a volume is used: in the first seconds after a start, or after the node was away,
 * waits for the comparison. If the registry cannot be asked, the node goes on with what it has.
 */
void move_await_reconciled(struct engine *engine);

/* Its row is INCOMING because it is being recovered (rule 13). */
bool move_is_recovery(const volume_record *volume);
/*
 * A volume that is MOVING or INCOMING, and is another node's as the registry shows: whether its
 * copy may be newer than what that node has, because the volume was recovered.
 */
bool move_is_superseding(const volume_record *volume, const struct owner *owner);
/* Writes SUPERSEDED. */
MUST_CHECK struct error *move_supersede_held(struct engine *engine, struct held_volume *held,
                                             const struct owner *owner, struct arena *arena);

/* ---- the node's store was lost: move_lost.c ---- */

/*
 * The registry has `owner` for a volume of which this node has no row. Writes LOST if it should be
 * here, and LEFT if this is its home: without the store nothing else tells where it is. ABORTED:
 * something has changed meanwhile.
 */
MUST_CHECK struct error *move_note_unknown(struct engine *engine,
                                           const struct move_cluster *cluster, const char *key,
                                           const struct owner *owner);
/* ---- a store that was never compared: move_await.c ---- */

/* Called at start: whether this store was ever compared with the registry. */
MUST_CHECK struct error *move_read_compared(struct engine *engine);
MUST_CHECK struct error *move_write_compared(struct engine *engine);
/*
 * Takes the error of reading a row. NOT_FOUND becomes UNAVAILABLE as long as the store, which may
 * be a new one in the place of one that was lost, was not compared.
 */
MUST_CHECK struct error *move_explain_absence(struct engine *engine, struct error *error);

/* ---- move_upkeep.c ---- */

struct move_upkeep;

/* A thread that decides what is undecided. Started when the node has joined its cluster. */
void move_upkeep_start(struct engine *engine, struct move_upkeep **out);
/* NULL is fine. */
void move_upkeep_stop(struct move_upkeep *upkeep);

/* ---- move_claims.c ---- */

struct claim_source move_claims(struct engine *engine);

#endif
