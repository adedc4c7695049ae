/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volumes are attached to this node, for a limit of their number. The rows say it; here it is
 * counted, and a place is taken before the row is written, so that two requests never take the
 * same.
 */
#ifndef VOLUMES_ATTACHED_H
#define VOLUMES_ATTACHED_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

struct engine;

struct attached {
    pthread_mutex_t lock;
    bool is_known;
    void *handles; /* a tree of tsearch */
    uint64_t count;
};

void attached_init(struct attached *attached);
void attached_clear(struct attached *attached);

/*
 * A place for the volume; one that has a place keeps it. RESOURCE_EXHAUSTED: the limit is reached
 * (0: there is none). The caller holds the volume's key and gives the place back if the row is not
 * written after all.
 */
MUST_CHECK struct error *attached_add(struct engine *engine, const char *handle, uint64_t limit);
void attached_remove(struct engine *engine, const char *handle);

#endif
