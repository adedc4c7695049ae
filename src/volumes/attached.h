/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the volumes that are attached to this node, to enforce a limit. The rows are the
 * authority. A slot is taken before the row is written, so two requests never take the same one.
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
 * Takes a slot for the volume, unless it has one. RESOURCE_EXHAUSTED: the limit is reached (0: no
 * limit). The caller holds the volume's lock, and gives the slot back if it does not write the row.
 */
MUST_CHECK struct error *attached_add(struct engine *engine, const char *handle, uint64_t limit);
void attached_remove(struct engine *engine, const char *handle);

#endif
