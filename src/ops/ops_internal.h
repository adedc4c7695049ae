/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of this directory. */
#ifndef OPS_OPS_INTERNAL_H
#define OPS_OPS_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "ops/ops.h"

#define OPS_PREFIX "operation/"

enum phase {
    PHASE_STARTING, /* its record is being written */
    PHASE_WAITING,  /* queued */
    PHASE_WORKING,
    PHASE_ENDED, /* its end is in the store; it is about to be removed from the list */
};

/* An operation that has not ended. */
struct operation {
    struct operation *next;
    struct ops *ops;
    struct ops_work work;
    struct arena texts;      /* of the record */
    operation_record record; /* current; the one in the store may be a second older */
    uint8_t *cursor;         /* of the record; NULL: none, or in `texts` */
    enum phase phase;
    unsigned users;         /* pointers to it that are held without the lock of struct ops */
    pthread_mutex_t saving; /* held for each write of the record, to keep them in order */
    uint64_t saved_ms;
    bool has_reported; /* in this process; before that, `done` is what an earlier one had done */
    int64_t reported_done; /* by this try; `done` of the record may be that of an earlier one */
    uint64_t sampled_ms;   /* of the rate: when it was */
    int64_t sampled_done;  /* this much */
    bool is_told_stalled;  /* it was logged */
};

/* Operations of one kind that have ended since the start. */
struct ops_ended {
    char kind[OPS_KIND_SIZE];
    uint64_t counts[OPERATION_STATE(CANCELLED) + 1]; /* by state */
};

struct ops {
    struct ops_options options;
    pthread_mutex_t lock;      /* for all below, and for operations except `work` and `texts` */
    pthread_cond_t work_waits; /* for a thread, or for a turn */
    pthread_cond_t changed;    /* an operation was started or has ended, or ops_stop was called */
    struct operation *unfinished; /* oldest first */
    size_t unfinished_count;
    pthread_t *threads; /* started when needed */
    unsigned thread_count;
    unsigned idle_count;
    unsigned working_count;   /* operations; at most options.max_running */
    unsigned resting_count;   /* begun, and not working now */
    unsigned returning_count; /* of these: those that have their turn before queued ones */
    bool is_stopped;
    bool is_sweeping;
    size_t ended_count;                         /* approximate */
    struct ops_ended ended[OPS_MOST_KINDS + 1]; /* the last one: of all other kinds */
    size_t kind_count;                          /* in `ended` */
    uint64_t swept_ms;                          /* when the last sweep began; 0: never */
    const char *known[OPS_MOST_KINDS];          /* kinds that this version can resume */
    size_t known_count;
};

/* ---- ops.c ---- */

/* Waits until the ended operation is not in the list any more. */
void ops_wait_until_removed(struct ops *ops, const operation_record *ended);

/* ---- ops_threads.c ---- */

void ops_open_threads(struct ops *ops);
/* After ops_stop: waits until all have ended. */
void ops_join_threads(struct ops *ops);

/* There may be work for one more thread. The caller holds the lock. */
void ops_wake_thread(struct ops *ops);

/* ---- operation.c ---- */

/* NULL: it is not in progress. The caller holds the lock. */
struct operation *operation_find(const struct ops *ops, const char *id);

/* Returns the current record instead of one that says RUNNING. */
operation_record *operation_current(struct ops *ops, operation_record *record, struct arena *arena);

/* Adds it to the list, PHASE_STARTING, with one user. The caller holds the lock. */
struct operation *operation_add(struct ops *ops, const struct ops_spec *spec);

/* Frees the operation with its last user. The caller holds the lock. */
void operation_release(struct operation *operation);

void operation_free_work(struct ops_work *work);

/* Removes it from the list, releases the user that it was added with, and wakes waiters. */
void operation_remove(struct operation *operation, bool has_ended);

/* Does the work, then ends it. The others are of struct progress, with it as their context. */
typedef void operation_rest(void *context, uint32_t ms);
void operation_run(struct operation *operation, operation_rest *rest, operation_rest *pause);

/* Writes the end, unless the work was only interrupted by ops_stop. Takes the result. */
void operation_end(struct operation *operation, struct error *result);

/* ---- operation_progress.c ---- */

/* Writes the current record, unless the end has been written. */
MUST_CHECK struct error *operation_write(struct operation *operation);

/* The same. A failure loses a second of progress; the next save repairs it. */
void operation_save(struct operation *operation);

/* `report` of struct progress, with the operation as its context. */
void operation_report(void *context, uint64_t done, uint64_t total);

/* ---- ops_records.c ---- */

char *ops_key(const char *id, struct arena *arena);
operation_record *ops_copy_record(const operation_record *record, struct arena *arena);
struct store_change ops_change(const operation_record *record, struct arena *arena);
MUST_CHECK struct error *ops_unpack(const struct store_entry *entry, struct arena *arena,
                                    operation_record **out);

/* From the store. The revision may be NULL. */
MUST_CHECK struct error *ops_read(struct ops *ops, const char *id, struct arena *arena,
                                  operation_record **out, uint64_t *revision);

/* Calls `visit` for every record in the store; an error ends the walk. */
typedef struct error *ops_visit(void *context, const struct store_entry *entry,
                                const operation_record *record);
MUST_CHECK struct error *ops_walk(struct ops *ops, ops_visit *visit, void *context);

/* ---- ops_counts.c ---- */

/* The place of the kind in `ended`, a new one if it is new. The caller holds the lock. */
size_t ops_find_kind(struct ops *ops, const char *kind);

/* ---- ops_sweep.c ---- */

/* Removes old records, if it is time for a sweep. */
void ops_sweep_if_due(struct ops *ops);

#endif
