/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter from version 1 to version 2: see host_adapter.h.
 *
 * The design of version 2 asks for Progress and Cancel that do nothing. An error would be one of
 * the operation, and the host would give up a good snapshot. Cancel as DeleteSnapshot was rejected:
 * the snapshot is complete by then, and Cancel never removes what is complete.
 */
#include "velero/host_adapter.h"

#include "base/clock.h"
#include "message/message_time.h"

Generated__OperationProgress *
host_adapter_progress(struct arena *arena)
{
    Generated__OperationProgress *progress = arena_alloc(arena, sizeof *progress);
    generated__operation_progress__init(progress);
    progress->completed = 1;
    progress->description = arena_string(arena, "complete: a plugin of version 1 has no progress");
    progress->updated = message_time_new(clock_unix_ns(), arena);
    return progress;
}
