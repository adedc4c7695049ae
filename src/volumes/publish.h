/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: a staged volume appears where its workload looks for it. See stage.h. */
#ifndef VOLUMES_PUBLISH_H
#define VOLUMES_PUBLISH_H

#include "volumes/stage.h"

/*
 * FAILED_PRECONDITION: not staged at use->staging_path; or published elsewhere, by a mode that allows one publication. ALREADY_EXISTS: at
 * the path in another way.
 */
MUST_CHECK struct error *publish_volume(struct engine *engine, const char *handle,
                                        const struct use *use);

/* An ephemeral volume, which has no staging: it appears at the path itself. */
MUST_CHECK struct error *publish_ephemeral(struct engine *engine, const char *handle,
                                           const struct use *use);

/* The path goes too. Not published there, or no such volume, is success. */
MUST_CHECK struct error *publish_undo(struct engine *engine, const char *handle, const char *path);

/* Parameters that were changed take effect wherever the volume is in use. */
MUST_CHECK struct error *publish_apply_parameters(struct engine *engine,
                                                  const volume_record *volume, struct arena *arena);

/* ---- for other kinds of volumes ---- */

/* FAILED_PRECONDITION: it is published elsewhere, and one of the access modes allows a single place. */
MUST_CHECK struct error *publish_check_others(const struct mount_list *uses, const struct use *use);

/* The row of the staging that is to be published. FAILED_PRECONDITION: there is none, or it does not fit the use. */
MUST_CHECK struct error *publish_check_staging(const struct mount_list *uses, const struct use *use,
                                               const mount_record **out);

/* It shows a raw device for reading only, as no other use does: the device for readers goes with it. */
bool publish_is_last_reader(const struct mount_list *uses, const mount_record *gone);

#endif
