/* SPDX-License-Identifier: Apache-2.0 */
/* The room from the inside, for its own files. */
#ifndef OPS_OPS_INTERNAL_H
#define OPS_OPS_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "ops/ops.h"

#define OPS_PREFIX "operation/"

enum phase {
    PHASE_STARTING, /* its record is being written */
    PHASE_WAITING,  /* for a thread */
    PHASE_WORKING,
    PHASE_ENDED, /* its end is in the store, and it is about to go */
};

/* One that has not ended. */
struct operation {
    struct operation *next;
    struct ops *ops;
    struct ops_work work;
    struct arena texts;      /* of the record */
    operation_record record; /* as it is now; the store's may be a second older */
    enum phase phase;
    unsigned users;         /* whoever holds a pointer to it without the room's lock */
    pthread_mutex_t saving; /* held for each write of the record, so that none overtakes another */
    uint64_t saved_ms;
};

struct ops {
    struct ops_options options;
    pthread_mutex_t lock; /* guards all below, and the operations' members but `work` and `texts` */
    pthread_cond_t work_waits;
    pthread_cond_t changed;       /* one was started, or has ended, or the room is stopped */
    struct operation *unfinished; /* the oldest first */
    size_t unfinished_count;
    pthread_t *threads; /* options.max_running of them; started when they are first needed */
    unsigned thread_count;
    unsigned idle_count;
    bool is_stopped;
    bool is_sweeping;
    size_t ended_count; /* about */
    uint64_t swept_ms;  /* when; 0: never */
};

/* ---- ops.c ---- */

bool ops_is_stopped(struct ops *ops);

/* Until nothing is left of the operation whose end this is. */
void ops_wait_until_out(struct ops *ops, const operation_record *ended);

/* ---- operation.c ---- */

/* With the lock held; NULL if it is not under way. */
struct operation *operation_find(const struct ops *ops, const char *id);

/* In place of a record that says RUNNING: how the operation is now, if it is under way here. */
operation_record *operation_freshen(struct ops *ops, operation_record *record, struct arena *arena);

/* At the end of the list, PHASE_STARTING, with one user. With the lock held. */
struct operation *operation_add(struct ops *ops, const struct ops_spec *spec);

/* One user less. With the lock held. */
void operation_release(struct operation *operation);

void operation_free_work(struct ops_work *work);

/*
 * Nobody finds it any more, and whoever waits for it looks again. Takes the user that it was added
 * with.
 */
void operation_take_out(struct operation *operation, bool has_ended);

/* Writes the record as it is now, unless its end is there already. */
void operation_save(struct operation *operation);

/* Does the work, then ends it. */
void operation_run(struct operation *operation);

/* Writes the end, unless the room is stopped and that is all; takes it out. Takes the result. */
void operation_end(struct operation *operation, struct error *result);

/* ---- ops_records.c ---- */

char *ops_key(const char *id, struct arena *arena);
operation_record *ops_copy_record(const operation_record *record, struct arena *arena);
struct store_change ops_change(const operation_record *record, struct arena *arena);
MUST_CHECK struct error *ops_unpack(const struct store_entry *entry, struct arena *arena,
                                    operation_record **out);

/* As it is in the store. */
MUST_CHECK struct error *ops_read(struct ops *ops, const char *id, struct arena *arena,
                                  operation_record **out);

/* Every record of the store, one by one, in an arena of their own; an error ends the walk. */
typedef struct error *ops_visit(void *context, const struct store_entry *entry,
                                const operation_record *record);
MUST_CHECK struct error *ops_walk(struct ops *ops, ops_visit *visit, void *context);

/* ---- ops_sweep.c ---- */

/* Removes records that have been there for long enough, if it is time to look again. */
void ops_sweep_if_due(struct ops *ops);

#endif
