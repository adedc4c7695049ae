/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a server about the snapshot that a plugin makes (skycap.v1.VeleroHost), so that it is one
 * of the server's operations: `skycap op` lists, watches and cancels it.
 *
 * A thread reports several times a second. A server that hangs or goes away holds up nothing: the
 * host goes on without it.
 */
#ifndef CLI_VELERO_REPORT_H
#define CLI_VELERO_REPORT_H

#include "cli/client.h"
#include "proto/skycap.pb-c.h"

struct velero_report;

/*
 * `state` gives the id, description, units and progress at the beginning; id and description must
 * outlive the report. If the server has an operation of that id itself, there is nothing to report.
 * `*out` is NULL then, and if there is no server; that is an error only if the user has named one.
 */
MUST_CHECK struct error *velero_report_open(struct client *client, bool is_named,
                                            const Skycap__V1__Operation *state,
                                            struct velero_report **out);

/* The next report has this progress. NULL is ignored, also below. */
void velero_report_progress(struct velero_report *report, int64_t done, int64_t total);

/* Whether somebody has asked the server to cancel. */
bool velero_report_is_cancelled(struct velero_report *report);

/* Reports the end, within 3 s or not at all. `result` NULL: the snapshot is complete. */
void velero_report_close(struct velero_report *report, const struct error *result);

#endif
