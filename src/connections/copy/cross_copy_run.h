/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the work of a copy, for the files of that work: see cross_copy_work.h. */
#ifndef CONNECTIONS_COPY_CROSS_COPY_RUN_H
#define CONNECTIONS_COPY_CROSS_COPY_RUN_H

#include "connections/copy/attach.h"
#include "connections/copy/cross_copy_work.h"
#include "connections/copy/source_capability.h"

struct cross_copy_run {
    struct cross_copy_work *work;
    struct call *call; /* detached */
    const char *directory;
    Csi__V1__VolumeCapability capability; /* how the target is published */
    Csi__V1__VolumeCapability__AccessMode access_mode;
    struct source_capability source_capability;
    Csi__V1__Volume source;       /* the volume itself, if there is no temporary copy */
    struct text_map from_secrets; /* the secrets of the request are for the target */
};

void cross_copy_run_begin(struct cross_copy_work *work, struct cross_copy_run *run);
void cross_copy_run_end(struct cross_copy_run *run);

const Csi__V1__VolumeContentSource *cross_copy_run_content(const struct cross_copy_run *run);
bool cross_copy_run_is_of_snapshot(const struct cross_copy_run *run);

/* Stores the record: after a crash the next process must be able to clean up. */
MUST_CHECK struct error *cross_copy_run_remember(struct cross_copy_run *run);

/* The target; or the temporary copy, or the source itself if there is none. */
struct attachment cross_copy_run_target(const struct cross_copy_run *run);
struct attachment cross_copy_run_source(const struct cross_copy_run *run);

/* DeleteVolume of the target or of the temporary copy. */
MUST_CHECK struct error *cross_copy_run_delete(struct cross_copy_run *run,
                                               struct connection *connection,
                                               const char *volume_id);

#endif
