/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a volume, or with the storage of all of them. */
#ifndef NODE_HEALTH_H
#define NODE_HEALTH_H

#include "volumes/rows.h"

enum problem_kind { PROBLEM_DEGRADED = 1, PROBLEM_INACCESSIBLE = 2, PROBLEM_DATA_LOSS = 3 };

struct problem {
    enum problem_kind kind;
    const char *reason; /* one CamelCase word */
    const char *message;
};

#define HEALTH_MOST 4

struct health_report {
    struct problem problems[HEALTH_MOST]; /* each reason once */
    size_t count;
};

/* Checks the volume's data. Makes only cheap checks. Messages live in the arena. */
void health_check_volume(struct engine *engine, const volume_record *volume, struct arena *arena,
                         struct health_report *out);

/* Checks its uses on this node too. */
MUST_CHECK struct error *health_check_uses(struct engine *engine, const volume_record *volume,
                                           struct arena *arena, struct health_report *out);

/* Whether volumes can be made and used here. The error names the back end that fails, and why. */
MUST_CHECK struct error *health_check_ready(struct engine *engine);

/* Checks the back end itself. */
void health_check_backend(struct engine *engine, struct arena *arena, struct health_report *out);

#endif
