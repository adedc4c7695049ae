/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing (NodePublishVolume): a staged volume is bound to the path where its workload looks for
 * it. See stage.h.
 */
#ifndef NODE_PUBLISH_H
#define NODE_PUBLISH_H

#include "node/stage.h"

/*
 * FAILED_PRECONDITION: not staged at use->staging_path; or published elsewhere, by a mode that
 * allows one publication. ALREADY_EXISTS: at the path in another way.
 */
MUST_CHECK struct error *publish_volume(struct engine *engine, const char *handle,
                                        const struct use *use);

/* An ephemeral volume, which has no staging: it appears at the path itself. */
MUST_CHECK struct error *publish_ephemeral(struct engine *engine, const char *handle,
                                           const struct use *use);

/* The path goes too. Not published there, or no such volume, is success. */
MUST_CHECK struct error *publish_undo(struct engine *engine, const char *handle, const char *path);

/* ---- for other kinds of volumes ---- */

/*
 * FAILED_PRECONDITION: it is published elsewhere, and one of the access modes allows a single
 * place.
 */
MUST_CHECK struct error *publish_check_others(const struct mount_list *uses, const struct use *use);

/*
 * The row of the staging that is to be published. FAILED_PRECONDITION: there is none, or it does
 * not fit the use.
 */
MUST_CHECK struct error *publish_check_staging(const struct mount_list *uses, const struct use *use,
                                               const mount_record **out);

/*
 * Binds what is staged to the path of the use, which is made. `is_known`: a mount there is our own,
 * and may be replaced.
 */
MUST_CHECK struct error *publish_bind_staged(const struct use *use, bool is_known,
                                             struct arena *arena);

/*
 * It shows a raw device for reading only, as no other use does: the device for readers goes with
 * it.
 */
bool publish_is_last_reader(const struct mount_list *uses, const mount_record *gone);

#endif
