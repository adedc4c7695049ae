/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does not fit together: rows, names, data, mounts, devices. And how to make the store again
 * from the volumes.
 */
#ifndef NODE_DOCTOR_H
#define NODE_DOCTOR_H

#include "volumes/engine.h"

struct finding {
    const char *kind;    /* one word for machines: "orphan", "lost-data", ... */
    const char *subject; /* a handle, a path, a device */
    const char *message; /* for people: what is wrong, and what to do */
    bool is_repaired;
};

typedef void doctor_found(void *context, const struct finding *finding);

/*
 * Looks at everything. With `repairs` what can be put right without losing anything is: data that
 * nothing refers to and that is older than the engine goes, rows of mounts that are gone go,
 * devices that nothing uses are detached, names are mended.
 */
MUST_CHECK struct error *doctor_examine(struct engine *engine, bool repairs, doctor_found *found,
                                        void *context);

/* Removes data and devices that nothing refers to, and logs it. For every start. */
MUST_CHECK struct error *doctor_sweep(struct engine *engine);

struct doctor_rebuilt {
    size_t volumes;
    size_t snapshots;
    size_t groups;
};

/*
 * Fills a new, empty store from the notes that stand beside the data. What has no note, one that
 * cannot be read, or one with a name that another has too, is told and left alone: an engine over
 * the store would sweep it away, so the store is only good if nothing was told. As long as it is
 * not, no engine opens it.
 */
MUST_CHECK struct error *doctor_rebuild(struct store *store, struct backend *backend,
                                        doctor_found *found, void *context,
                                        struct doctor_rebuilt *out);

#endif
