/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by repositories*.c. */
#ifndef CSI_REPOSITORIES_INTERNAL_H
#define CSI_REPOSITORIES_INTERNAL_H

#include "csi/controller.h"
#include "proto/repositories.pb-c.h"
#include "repository/patience.h"
#include "volumes/repository_task.h"

/* ---- repositories_patience.c ---- */

/* Until the client does not wait any more. */
struct patience repositories_patience(struct call *call);

/* ---- repositories_follow.c ---- */

/*
 * Sends the messages of the operation, until it has ended or the client has gone, which cancels it.
 * The last message is the one with `is_result`. Takes the task.
 */
MUST_CHECK struct error *repositories_follow(struct call *call, struct repository_task *task);

/* ---- repositories_care.c ---- */

MUST_CHECK struct error *repositories_verify(struct call *call,
                                             const Skycap__V1__VerifyRepositoryRequest *request);
MUST_CHECK struct error *repositories_prune(struct call *call,
                                            const Skycap__V1__PruneRepositoryRequest *request);

MUST_CHECK struct error *repositories_rebuild(struct call *call,
                                              const Skycap__V1__RebuildRepositoryRequest *request);

/* ---- repositories_drill.c ---- */

MUST_CHECK struct error *repositories_drill(struct call *call,
                                            const Skycap__V1__DrillRequest *request);

#endif
