/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restore drills: a snapshot of a repository is imported into a volume, compared with the
 * repository byte by byte, and published for a check of the operator's. Then the volume is deleted.
 * The time of the last success is kept in the store.
 */
#ifndef NODE_DRILL_H
#define NODE_DRILL_H

#include "base/buffer.h"
#include "volumes/engine.h"

struct drill_request {
    const char *repository;
    const char *snapshot; /* as import_request's; "": the newest */
    /*
     * NULL at the end; NULL: none. Its environment has SKYCAP_DRILL_PATH, or SKYCAP_DRILL_DEVICE
     * for a volume without a file system.
     */
    const char *const *command;
    uint32_t command_timeout_ms; /* 0: an hour */
    /* Called after each step: "import", "compare", "command", "remove". May be NULL. */
    void (*report)(void *context, const char *step, uint64_t duration_ms, const char *output);
    bool (*cancelled)(void *context);
    void *context;
};

struct drill_result {
    const char *id; /* of the snapshot in the repository, in the arena */
    uint64_t bytes;
};

/* DATA_LOSS: the repository is damaged. FAILED_PRECONDITION: the command has failed. */
MUST_CHECK struct error *drill_run(struct engine *engine, const struct drill_request *request,
                                   struct arena *arena, struct drill_result *out);

/* When a drill of the repository succeeded last; 0: never. */
MUST_CHECK struct error *drill_last_success(struct engine *engine, const char *repository,
                                            int64_t *ns);

/* Deletes the volumes of drills that a crash has ended. Called at start, before requests come. */
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

/* Sweeps, then runs the drills that the files of repositories ask for. `turn` NULL: all of them. */
MUST_CHECK struct error *drill_schedule_open(struct engine *engine, const struct drill_turn *turn,
                                             struct drill_schedule **out);
/* Before the engine is closed. NULL is fine. */
void drill_schedule_close(struct drill_schedule *schedule);

#endif
