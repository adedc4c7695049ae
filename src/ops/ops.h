/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long-running operations: whatever may take longer than a caller waits. An operation has a durable
 * record (`operation/ID` in the store) from before its work starts until a day after its end; it
 * can be asked how far it is, waited for, watched and cancelled, and it is taken up again after a
 * crash.
 *
 *     ops_start    one write: the record RUNNING and the caller's changes; then waits for a thread
 *     run          the work, on a thread of this room; a few at a time
 *     settle       says what belongs into the same write as the end
 *     the end      one write: SUCCEEDED, FAILED or CANCELLED, and settle's changes; wakes waiters
 *
 * An id is never worked on twice at the same time. All functions may block and are safe from any
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

#define OPS_MAX_CHANGES 8       /* beside the operation's own record, in one write */
#define OPS_MAX_UNFINISHED 1024 /* more are refused with RESOURCE_EXHAUSTED */

typedef Skycap__Records__OperationRecord operation_record;
#define OPERATION_STATE(name) SKYCAP__RECORDS__OPERATION_RECORD__STATE__##name

struct ops;

/* Zero means the default that stands beside it. */
struct ops_options {
    struct store *store; /* the caller's; outlives the room */
    const struct log *log;
    unsigned max_running;  /* 4 at a time; the others wait for their turn */
    unsigned save_ms;      /* 1000: how often progress is written */
    unsigned keep_seconds; /* a day: how long the records of ended operations stay */
    size_t max_ended;      /* 10,000 records of ended operations; of more the oldest go */
};

/* Touches nothing: what a crash has left unfinished waits for ops_resume. */
struct ops *ops_open(const struct ops_options *options);

/*
 * From now on nothing is started, waits and watches return at once, and work that runs is told to
 * end; its records stay RUNNING, so that it is taken up again at the next start. Done again it does
 * nothing.
 */
void ops_stop(struct ops *ops);

/* Stops, and waits until all work has ended. Watches have been closed before. */
void ops_close(struct ops *ops);

/* ---- starting ---- */

struct ops_changes {
    struct store_change items[OPS_MAX_CHANGES];
    size_t count;
};

/* What is to be done. Each function gets the context. */
struct ops_work {
    void *context;
    /*
     * The work itself. It reports to `progress` and ends with CANCELLED soon after that says so; it
     * may have been cancelled before it began. When the room is stopped that is no end: the work
     * will be run again from the start, in another process.
     */
    struct error *(*run)(void *context, const struct progress *progress);
    /*
     * Once, when the work has ended for good (`result` NULL: well): cleans up after a failure and
     * adds what is to be written together with the end. Keys and values live in the arena, or as
     * long as the context. May be NULL. Runs without `run` if an operation is cancelled that still
     * waits for its turn.
     */
    void (*settle)(void *context, const struct error *result, struct arena *arena,
                   struct ops_changes *out);
    /*
     * Frees the context, before anybody is told of the end; also when the start fails. May be NULL.
     */
    void (*free)(void *context);
};

struct ops_spec {
    const char *id;      /* should sort by time, as handles do: of too many the first go */
    const char *kind;    /* "copy-volume" */
    const char *subject; /* what it works for */
    const char *units;   /* "bytes" */
    const char *description;
    int64_t total;                      /* 0: not known yet */
    const struct store_change *changes; /* written with the record; at most OPS_MAX_CHANGES */
    size_t change_count;
    struct ops_work work;            /* taken, whatever happens */
    const operation_record *resumed; /* what ops_resume gave: nothing is written, it is all there */
};

/*
 * Durable when it returns. An id that is under way is joined: the work that came with this call is
 * freed and nothing is written. One that has ended is started anew. UNAVAILABLE: the room is
 * stopped. ABORTED: the store holds something else than `changes` expect.
 */
MUST_CHECK struct error *ops_start(struct ops *ops, const struct ops_spec *spec);

/* How operations of one kind are taken up after a restart: by ops_start with `resumed`. */
struct ops_kind {
    const char *name;
    struct error *(*resume)(void *context, const operation_record *record);
};

/*
 * Hands over every record of these kinds that says RUNNING and is not under way here. What cannot
 * be resumed is logged.
 */
MUST_CHECK struct error *ops_resume(struct ops *ops, const struct ops_kind *kinds, size_t count,
                                    void *context);

/* ---- asking ---- */

/*
 * Waits until it has ended, at most so long; `*out` says how it is then, in the arena. NOT_FOUND:
 * never known, or long ago.
 */
MUST_CHECK struct error *ops_wait(struct ops *ops, const char *id, uint64_t timeout_ms,
                                  struct arena *arena, operation_record **out);

MUST_CHECK struct error *ops_get(struct ops *ops, const char *id, struct arena *arena,
                                 operation_record **out);

/* In the order of ids. `after`: NULL or the last id seen; `limit` 0: all. */
struct ops_page {
    operation_record **records;
    size_t count;
    bool has_more;
};
MUST_CHECK struct error *ops_list(struct ops *ops, const char *after, size_t limit,
                                  struct arena *arena, struct ops_page *out);

/*
 * Durable when it returns, and done once is enough; the end comes a little later (ops_wait), at
 * once if the operation still waited for its turn. What has ended stays as it ended. NOT_FOUND:
 * never known, or long ago.
 */
MUST_CHECK struct error *ops_cancel(struct ops *ops, const char *id);

/* ---- watching ---- */

struct ops_watch;

/*
 * `id` NULL: all. First comes how the operation is now (of all: those that are under way), then
 * whatever changes; progress about once a second. NOT_FOUND. A watch is for one thread at a time.
 */
MUST_CHECK struct error *ops_watch_open(struct ops *ops, const char *id, struct ops_watch **out);

/* DEADLINE_EXCEEDED: nothing new in that time. UNAVAILABLE: the room is stopped. */
MUST_CHECK struct error *ops_watch_next(struct ops_watch *watch, uint32_t timeout_ms,
                                        struct arena *arena, operation_record **out);
void ops_watch_close(struct ops_watch *watch);

#endif
