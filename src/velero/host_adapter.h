/* SPDX-License-Identifier: Apache-2.0 */
/* What version 2 of the volume snapshotter has beyond version 1, for plugins of version 1. */
#ifndef VELERO_HOST_ADAPTER_H
#define VELERO_HOST_ADAPTER_H

#include "base/arena.h"
#include "proto/velero_v1.pb-c.h"

/*
 * A snapshot of version 1 is complete when CreateSnapshot has returned its id. Whether there is
 * such a snapshot is not known here.
 */
Generated__OperationProgress *host_adapter_progress(struct arena *arena);

#endif
