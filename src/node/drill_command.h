/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the check of a drill. */
#ifndef NODE_DRILL_COMMAND_H
#define NODE_DRILL_COMMAND_H

#include "node/drill.h"

/* `place` is NAME=PATH for the environment. FAILED_PRECONDITION: its exit code is not 0. */
MUST_CHECK struct error *drill_command_run(const struct drill_request *request,
                                           const struct progress *progress, const char *place,
                                           struct buffer *output);

#endif
