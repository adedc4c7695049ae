/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long-running operations: work that may take longer than a caller waits. An operation has a
 * durable record (`operation/ID` in the store) from before its work starts until a day after its
 * end. Its progress can be read and watched, it can be waited for and cancelled, and it is resumed
 * after a crash.
 *
 *     ops_start    one write: the record RUNNING and the caller's changes; then queues the work
 *     run          the work, on a thread of its own; a few run at the same time
 *     settle       adds changes to the write of the end
 *     the end      one write: SUCCEEDED, FAILED or CANCELLED, and settle's changes; wakes waiters
 *
 * An id has at most one operation at a time. All functions may block, and may be called from any
 * thread but the loop's.
 */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "backends/backend.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "proto/records.pb-c.h"
#include "store/store.h"

#define OPS_MAX_CHANGES 8       /* in one write, besides the operation's record */
#define OPS_MAX_UNFINISHED 1024 /* more are refused with RESOURCE_EXHAUSTED */

typedef Skycap__Records__OperationRecord operation_record;
#define OPERATION_STATE(name) SKYCAP__RECORDS__OPERATION_RECORD__STATE__##name
#define OPERATION_PHASE(name) SKYCAP__RECORDS__OPERATION_RECORD__PHASE__##name

struct ops;

/* 0: the default, which the comment begins with. */
struct ops_options {
    struct store *store; /* must outlive struct ops */
    const struct log *log;
    unsigned max_running;  /* 4; the others are queued. One that rests does not count */
    unsigned save_ms;      /* 1000: interval between writes of progress */
    unsigned keep_seconds; /* a day: how long records of ended operations are kept */
    size_t max_ended;      /* 10,000 records of ended operations; the oldest are removed */
    unsigned stall_ms;     /* a minute: without progress for so long, one that works is stalled */
};

/* Starts nothing: unfinished operations wait for ops_resume. */
struct ops *ops_open(const struct ops_options *options);

/*
 * Starts nothing any more, ends waits and watches, and interrupts the running work. Its records
 * stay RUNNING, so it is resumed at the next start. May be called repeatedly.
 */
void ops_stop(struct ops *ops);

/* Whether ops_stop was called, so that cancelled work is continued by the next process. */
bool ops_is_stopped(struct ops *ops);

/* Stops, and waits until all work has ended. All watches must be closed. */
void ops_close(struct ops *ops);

/* ---- starting ---- */

struct ops_changes {
    struct store_change items[OPS_MAX_CHANGES];
    size_t count;
    const char *result; /* of the end alone: what was done, in words; NULL: nothing to say */
};

/* The work. Each function is called with the context. */
struct ops_work {
    void *context;
    /*
     * Does the work. Reports to `progress`, and returns CANCELLED soon after that says so, which
     * may be before it began. Work that ops_stop has cancelled is run again from the start by the
     * next process.
     */
    struct error *(*run)(void *context, const struct progress *progress);
    /*
     * Called once, when the work has ended (`result` NULL: successfully). Cleans up after a failure
     * and adds changes to the write of the end. Keys and values live in the arena, or as long as
     * the context. May be NULL. Called without `run` if a queued operation is cancelled.
     */
    void (*settle)(void *context, const struct error *result, struct arena *arena,
                   struct ops_changes *out);
    /* Frees the context, before waiters are woken; also if the start fails. May be NULL. */
    void (*free)(void *context);
};

struct ops_spec {
    const char *id;      /* should sort by time, as handles do: the first ones are removed first */
    const char *kind;    /* "copy-volume" */
    const char *subject; /* the id of what it creates */
    const char *units;   /* "bytes" */
    const char *description;
    int64_t total;                      /* 0: unknown */
    bool in_background;                 /* nobody waits for it: others go first */
    const struct store_change *changes; /* written with the record; at most OPS_MAX_CHANGES */
    size_t change_count;
    struct ops_work work;            /* ops_start takes it, also if it fails */
    const operation_record *resumed; /* the record from ops_resume: nothing is written */
};

/*
 * The start is durable when it returns. If the id has an operation in progress, the given work is
 * freed and nothing is written. If it has ended, it is started again. UNAVAILABLE: ops_stop was
 * called. ABORTED: the store does not hold what `changes` expect.
 */
MUST_CHECK struct error *ops_start(struct ops *ops, const struct ops_spec *spec);

/* `resume` calls ops_start with `resumed`, or ops_continue. */
struct ops_kind {
    const char *name;
    struct error *(*resume)(void *context, const operation_record *record);
};

/* Starts the work of the spec for an operation that was interrupted, as its record says. */
MUST_CHECK struct error *ops_continue(struct ops *ops, const struct ops_spec *spec,
                                      const operation_record *record);

/* Resumes all operations of these kinds after a restart. Failures are logged. */
MUST_CHECK struct error *ops_resume(struct ops *ops, const struct ops_kind *kinds, size_t count,
                                    void *context);

/* ---- for the work ---- */

/*
 * Where the work is, durably: `cursor` of the record that the next process resumes it with. Called
 * by `run`, with the progress that it was given, after what it stands for is durable. After an
 * error the cursor before may be in force. Of 0 bytes: there is none any more.
 */
MUST_CHECK struct error *ops_save_cursor(const struct progress *progress, const void *bytes,
                                         size_t size);

/* ---- asking ---- */

/*
 * Waits until the operation has ended or the time has passed; `*out` is its state then, in the
 * arena. NOT_FOUND: the id is unknown, or its record has been removed.
 */
MUST_CHECK struct error *ops_wait(struct ops *ops, const char *id, uint64_t timeout_ms,
                                  struct arena *arena, operation_record **out);

MUST_CHECK struct error *ops_get(struct ops *ops, const char *id, struct arena *arena,
                                 operation_record **out);

/* False also in a state that this version does not know. */
bool ops_has_ended(const operation_record *operation);

/* How much is done; 100 only when it has ended. 0: not known yet. */
unsigned ops_percent(const operation_record *operation);

/* -1: unknown. */
int64_t ops_seconds_left(const operation_record *operation);

/* Whether it works, but has made no progress for ops_options.stall_ms. */
bool ops_is_stalled(const operation_record *operation);

/* Logs those that have stalled, each time once. To be called from time to time. */
void ops_log_stalled(struct ops *ops);

#define OPS_MOST_KINDS 16      /* that are counted one by one */
#define OPS_KIND_SIZE 32       /* with the NUL */
#define OPS_OTHER_KIND "other" /* what all others are counted as */

/* How many there are of a kind. */
struct ops_counts {
    char kind[OPS_KIND_SIZE];
    unsigned queued;
    unsigned working;
    unsigned waiting;   /* for something outside */
    unsigned stalled;   /* of those that are working */
    uint64_t succeeded; /* since the start of the process, as the following */
    uint64_t failed;
    uint64_t cancelled;
};

/* Of each kind that ops_resume was given, or that there was one of. Returns how many kinds. */
size_t ops_count(struct ops *ops, struct ops_counts out[OPS_MOST_KINDS + 1]);

/* In the order of ids. `after`: NULL or the last id seen; `limit` 0: all. */
struct ops_page {
    operation_record **records;
    size_t count;
    bool has_more;
};
MUST_CHECK struct error *ops_list(struct ops *ops, const char *after, size_t limit,
                                  struct arena *arena, struct ops_page *out);

/*
 * The request is durable when it returns. A queued operation ends at once, a running one a little
 * later (ops_wait); one that has ended does not change. NOT_FOUND: as ops_wait.
 */
MUST_CHECK struct error *ops_cancel(struct ops *ops, const char *id);

/* ---- watching ---- */

struct ops_watch;

/*
 * Returns the current state first, then each change; progress about once a second. `id` NULL: all
 * operations, beginning with those in progress. NOT_FOUND: as ops_wait. For one thread at a time.
 */
MUST_CHECK struct error *ops_watch_open(struct ops *ops, const char *id, struct ops_watch **out);

/* DEADLINE_EXCEEDED: no change in that time. UNAVAILABLE: ops_stop was called. */
MUST_CHECK struct error *ops_watch_next(struct ops_watch *watch, uint32_t timeout_ms,
                                        struct arena *arena, operation_record **out);
void ops_watch_close(struct ops_watch *watch);

#endif
