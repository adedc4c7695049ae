/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a source on another node, with what this node has of the same volume already. */
#ifndef VOLUMES_REMOTE_OPEN_H
#define VOLUMES_REMOTE_OPEN_H

#include "volumes/remote_data.h"

/*
 * Opens the source of the request. `node_id`: the node that has it; "": the one in the handle. The
 * caller closes the source (`*by`), once the copy has ended or cannot be started. Texts are in the
 * arena. UNAVAILABLE also if this node has not joined its cluster yet.
 */
MUST_CHECK struct error *remote_open_source(struct engine *engine,
                                            const struct volume_request *request,
                                            const char *node_id, struct arena *arena,
                                            struct remote_source *out,
                                            const struct remote_data **by);

/* The source as a record, for VolumeRecord.remote_source; NULL if it is not to be kept. */
snapshot_record *remote_open_record(const struct remote_source *source, struct arena *arena);

#endif
