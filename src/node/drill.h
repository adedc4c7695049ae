/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restore drills: a snapshot of a repository is imported into a volume, compared with the
 * repository byte by byte, and published for a check of the operator's. Then the volume is deleted.
 * The time of the last success is kept in the store. A drill is an operation
 * (volumes/repository_task.h).
 */
#ifndef NODE_DRILL_H
#define NODE_DRILL_H

#include "base/buffer.h"
#include "volumes/repository_task.h"

struct drill_request {
    const char *repository;
    const char *snapshot; /* as import_request's; "": the newest */
    /*
     * NULL at the end; NULL: none. Its environment has SKYCAP_DRILL_PATH, or SKYCAP_DRILL_DEVICE
     * for a volume without a file system.
     */
    const char *const *command;
    uint32_t command_timeout_ms; /* 0: an hour */
    bool in_background;          /* nobody waits for it */
};

/*
 * Its messages are DrillSteps: one after each step, "import", "compare", "command" and "remove",
 * then the result. The operation ends with DATA_LOSS if the repository is damaged, and with
 * FAILED_PRECONDITION if the command has failed. ABORTED: the same drill is under way.
 */
MUST_CHECK struct error *drill_start(struct engine *engine, const struct drill_request *request,
                                     struct repository_task **out);

/* When a drill of the repository succeeded last; 0: never. */
MUST_CHECK struct error *drill_last_success(struct engine *engine, const char *repository,
                                            int64_t *ns);

/*
 * Deletes the volumes that drills have left: after a crash, or because they were in use. Called at
 * start, before requests come, also without repositories; the schedule repeats it.
 */
void drill_sweep(struct engine *engine);

/* The name of a volume as it is shown: that of a drill's volume has a mark that is left out. */
const char *drill_shown_name(const char *name);

/* The exports and drills of all repositories, as metrics: drill_metrics.c. */
void drill_print_metrics(struct engine *engine, struct buffer *out);

/* ---- the schedule: drill_schedule.c ---- */

struct drill_schedule;

enum drill_answer {
    DRILL_OURS,
    DRILL_NOT_OURS,
    DRILL_ASK_AGAIN, /* it cannot be told yet */
};

/* Where several engines have the same repositories: who of them runs a drill that is due. */
struct drill_turn {
    enum drill_answer (*take)(void *context, const char *repository, uint32_t every_hours);
    void (*succeed)(void *context, const char *repository);
    void *context;
};

/* Runs the drills that the files of repositories ask for. `turn` NULL: all of them. */
MUST_CHECK struct error *drill_schedule_open(struct engine *engine, const struct drill_turn *turn,
                                             struct drill_schedule **out);
/* Before the engine is closed. NULL is fine. */
void drill_schedule_close(struct drill_schedule *schedule);

#endif
