/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `skycap snapshot` that have files of their own. */
#ifndef CLI_SNAPSHOT_H
#define CLI_SNAPSHOT_H

#include "cli/volume.h"

/* snapshot_diff.c */
VERB(snapshot_run_diff);

#endif
