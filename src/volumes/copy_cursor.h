/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a copy on this node goes on after a restart: the cursor of its operation. It is saved after
 * the data that it stands for is durable (backends/file_copy.c), so a power failure takes nothing
 * from it. Files of a tree are not made durable one by one, and a volume may have changed unnoticed
 * when the power failed: only the copy of a snapshot that is an image goes on in another boot.
 */
#ifndef VOLUMES_COPY_CURSOR_H
#define VOLUMES_COPY_CURSOR_H

#include "volumes/engine.h"

struct copy_cursor {
    struct engine *engine;
    bool has_position; /* an earlier process has made a part of the copy */
    struct copy_position position;
    const struct progress *progress; /* of the operation, while it runs */
};

/* What the record of the operation says. A cursor that cannot be used is none. */
void copy_cursor_read(struct copy_cursor *cursor, const operation_record *operation,
                      const struct data *from);

/*
 * The progress for the back end, as long as both arguments live. A volume that is a tree may have
 * changed while nothing ran, so a copy of it begins anew.
 */
struct progress copy_cursor_progress(struct copy_cursor *cursor, const struct data *from,
                                     const struct progress *progress);

#endif
