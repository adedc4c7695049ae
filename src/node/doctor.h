/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds inconsistencies between rows, names, data, mounts and devices, and rebuilds the store from
 * the volumes.
 */
#ifndef NODE_DOCTOR_H
#define NODE_DOCTOR_H

#include "volumes/engine.h"

struct finding {
    const char *kind;    /* one word for programs: "orphan", "lost-data", ... */
    const char *subject; /* a handle, a path, a device */
    const char *message; /* for people: what is wrong and what to do */
    bool is_repaired;
};

typedef void doctor_found(void *context, const struct finding *finding);

/*
 * Examines everything. With `repairs`, repairs what can be repaired without losing anything:
 * removes data that nothing refers to and that is older than the engine, removes rows whose mounts
 * are gone, detaches unused devices, and repairs names.
 */
MUST_CHECK struct error *doctor_examine(struct engine *engine, bool repairs, doctor_found *found,
                                        void *context);

/* Removes data and devices that nothing refers to, and logs it. Called at every start. */
MUST_CHECK struct error *doctor_sweep(struct engine *engine);

struct doctor_rebuilt {
    size_t volumes;
    size_t snapshots;
    size_t groups;
};

/*
 * Fills a new, empty store from the notes beside the data. Data without a note, with an unreadable
 * one, or with a name that another has too, is reported and left alone. An engine would remove such
 * data, so the store is complete only if nothing was reported; until it is, no engine opens it.
 */
MUST_CHECK struct error *doctor_rebuild(struct store *store, struct backend *backend,
                                        doctor_found *found, void *context,
                                        struct doctor_rebuilt *out);

#endif
