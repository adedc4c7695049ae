/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are too long. An id has 128 bytes at most, the connection's name included; a third-party driver's handle may need all of them. Such a
 * handle is known to the orchestrator by a short one, "~" and 16 digits, and a row in the store says what it stands for.
 *
 * Any thread but the loop's.
 */
#ifndef CONNECTIONS_HANDLES_H
#define CONNECTIONS_HANDLES_H

#include "connections/global_id.h"
#include "store/store.h"

/* Must a row be read to know what the handle of an id stands for? */
bool handles_is_short(const char *handle);

/* Is a row needed for the id of this handle of a driver's? */
bool handles_needs_row(const char *connection, const char *handle);

/* The id for a driver's handle. Durable when it returns. */
MUST_CHECK struct error *handles_print_id(struct store *store, enum id_kind kind,
                                          const char *connection, const char *handle,
                                          struct arena *arena, char **id);

/* The driver's handle. NOT_FOUND: the short one was never given out. */
MUST_CHECK struct error *handles_read(struct store *store, const char *handle, struct arena *arena,
                                      const char **out);

#endif
