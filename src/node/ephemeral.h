/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline volumes: created when they are published, for one workload, under an id that the
 * orchestrator chose; deleted when they are unpublished.
 */
#ifndef NODE_EPHEMERAL_H
#define NODE_EPHEMERAL_H

#include "base/text_map.h"
#include "node/use.h"

struct ephemeral_request {
    const char *id;
    struct text_map context; /* volume_context: "size", and the parameters of CreateVolume */
    struct use use;
};

/*
 * Creates the volume if it does not exist, and publishes it. INVALID_ARGUMENT: block access, or the
 * context.
 */
MUST_CHECK struct error *ephemeral_publish(struct engine *engine,
                                           const struct ephemeral_request *request);

/* The handle of the ephemeral volume with this id; NULL: there is none. */
MUST_CHECK struct error *ephemeral_find(struct engine *engine, const char *id, struct arena *arena,
                                        const char **handle);

/* The orchestrator's id of an ephemeral volume. */
char *ephemeral_id(const volume_record *volume);

/* Unpublishes and deletes it. If it is not published there, it stays. */
MUST_CHECK struct error *ephemeral_remove(struct engine *engine, const char *handle,
                                          const char *path);

#endif
