/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long work on a repository as an operation (ops/ops.h): verify, prune, rebuild and drills. The
 * caller that started it is its follower: it gets the messages of the work, and cancels it by
 * leaving.
 *
 * The work is not resumed after a restart, because its follower has gone: the operation is FAILED
 * then. It can be repeated at any time.
 */
#ifndef VOLUMES_REPOSITORY_TASK_H
#define VOLUMES_REPOSITORY_TASK_H

#include "base/buffer.h"
#include "volumes/engine.h"

#define VERIFY_REPOSITORY "verify-repository" /* kinds of operations */
#define PRUNE_REPOSITORY "prune-repository"
#define REBUILD_REPOSITORY "rebuild-repository"
#define DRILL_SNAPSHOT "drill-snapshot"

/* Whether the kind is one of these. The subject of such an operation is the repository's name. */
bool repository_task_is_kind(const char *kind);

/* Shared by the operation and its follower. */
struct repository_task;

struct repository_job {
    const char *kind;
    const char *repository;
    const char *what;        /* of the repository; "": all of it. One of a kind runs for it */
    const char *units;       /* of the progress */
    const char *description; /* for people */
    bool in_background;      /* others go first */
    void *context;
    /* Does the work with the functions below. CANCELLED soon after the progress says so. */
    struct error *(*run)(void *context, struct repository_task *task);
    void (*free)(void *context); /* may be NULL */
};

/*
 * The start is durable when it returns. Takes the job's context, also if it fails. ABORTED names
 * the operation if the same is under way.
 */
MUST_CHECK struct error *repository_task_start(struct engine *engine,
                                               const struct repository_job *job,
                                               struct repository_task **out);

/* ---- for the work ---- */

const struct progress *repository_task_progress(const struct repository_task *task);

/* For the follower. Waits until the last message has been taken. */
void repository_task_tell(struct repository_task *task, const ProtobufCMessage *message);

/* A text about what the operation has done, if it succeeds. */
struct buffer *repository_task_result(struct repository_task *task);

/* ---- for the follower ---- */

struct repository_follower {
    struct error *(*take)(void *context, const ProtobufCMessage *message); /* may be NULL */
    bool (*is_gone)(void *context); /* it does not wait any more */
    void *context;
};

/*
 * Takes the messages until the operation has ended; the error is its own. If `take` fails or the
 * follower is gone, cancels the operation and waits for its end; the error is then that of `take`,
 * or CANCELLED. UNAVAILABLE: the server is shutting down. Takes the task. Call it once.
 */
MUST_CHECK struct error *repository_task_follow(struct repository_task *task,
                                                const struct repository_follower *follower);

/* Called at start: what was under way has failed. */
MUST_CHECK struct error *repository_task_end_all(struct engine *engine);

#endif
