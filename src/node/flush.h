/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes what was written to a volume in use, before its data is copied. */
#ifndef NODE_FLUSH_H
#define NODE_FLUSH_H

#include "volumes/rows.h"

/*
 * When it returns, everything that was written before the call is in the volume's data: it syncs
 * the file system in an image and flushes a raw device. Writers do not have to wait. Not needed for
 * a directory tree, nor for an image that is frozen while it is copied (freeze.h).
 */
MUST_CHECK struct error *flush_volume(struct engine *engine, const volume_record *volume,
                                      struct arena *arena);

#endif
