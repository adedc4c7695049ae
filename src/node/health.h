/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a volume, or with the place where all of them are. */
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

/* The data of the volume. Asks only what is cheap. Messages live in the arena. */
void health_check_volume(struct engine *engine, const volume_record *volume, struct arena *arena,
                         struct health_report *out);

/* And its uses on this node. */
MUST_CHECK struct error *health_check_uses(struct engine *engine, const volume_record *volume,
                                           struct arena *arena, struct health_report *out);

/* Can volumes be made and used here? The error says which back end cannot, and why. */
MUST_CHECK struct error *health_check_ready(struct engine *engine);

/* The back end itself. */
void health_check_backend(struct engine *engine, struct arena *arena, struct health_report *out);

#endif
