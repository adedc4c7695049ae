/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing (NodePublishVolume): binds a staged volume to the path where its workload expects it.
 * See stage.h.
 */
#ifndef NODE_PUBLISH_H
#define NODE_PUBLISH_H

#include "node/stage.h"

/*
 * FAILED_PRECONDITION: not staged at use->staging_path; or published elsewhere with an access mode
 * that allows one publication. ALREADY_EXISTS: published at the path in another way.
 */
MUST_CHECK struct error *publish_volume(struct engine *engine, const char *handle,
                                        const struct use *use);

/* An ephemeral volume, which is not staged: it is mounted at the path itself. */
MUST_CHECK struct error *publish_ephemeral(struct engine *engine, const char *handle,
                                           const struct use *use);

/* Removes the path too. Success if it is not published there or does not exist. */
MUST_CHECK struct error *publish_undo(struct engine *engine, const char *handle, const char *path);

/* ---- for other kinds of volumes ---- */

/*
 * FAILED_PRECONDITION: it is published elsewhere, and one of the access modes allows a single
 * publication.
 */
MUST_CHECK struct error *publish_check_others(const struct mount_list *uses, const struct use *use);

/*
 * The row of the staging to publish. FAILED_PRECONDITION: there is none, or it does not fit the
 * use.
 */
MUST_CHECK struct error *publish_check_staging(const struct mount_list *uses, const struct use *use,
                                               const mount_record **out);

/*
 * Binds the staged volume to the path of the use, which it creates. `is_known`: a mount there is
 * ours and may be replaced.
 */
MUST_CHECK struct error *publish_bind_staged(const struct use *use, bool is_known,
                                             struct arena *arena);

/*
 * Whether this is the only use that shows a raw device for reading only: then the read-only device
 * is detached with it.
 */
bool publish_is_last_reader(const struct mount_list *uses, const mount_record *gone);

#endif
