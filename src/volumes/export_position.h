/* SPDX-License-Identifier: Apache-2.0 */
/* The row that tells how far an export or an import is. */
#ifndef VOLUMES_EXPORT_POSITION_H
#define VOLUMES_EXPORT_POSITION_H

#include "volumes/engine.h"

typedef Skycap__Records__ExportPosition export_position;

/* The keys, in the arena. */
const char *export_position_row(const char *operation, struct arena *arena);
const char *import_position_row(const char *handle, struct arena *arena);

MUST_CHECK struct error *export_position_save(struct engine *engine, const char *row,
                                              const export_position *position);
/* `*out` is NULL if there is none. */
MUST_CHECK struct error *export_position_read(struct engine *engine, const char *row,
                                              struct arena *arena, export_position **out);

#endif
