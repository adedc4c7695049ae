/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was written to a volume in use and is only in memory yet becomes part of its data, before
 * the data is copied.
 */
#ifndef NODE_FLUSH_H
#define NODE_FLUSH_H

#include "volumes/rows.h"

/*
 * Everything that was written before the call is in the volume's data when it returns: the file
 * system in an image is synced, a raw device flushed. Nobody who writes has to wait. A directory
 * tree needs none of it, nor does an image that is copied while it is frozen (freeze.h).
 */
MUST_CHECK struct error *flush_volume(struct engine *engine, const volume_record *volume,
                                      struct arena *arena);

#endif
