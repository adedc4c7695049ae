/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connection labels have selected for a new volume. `choice/NAME` names the connection, and
 * is written before its driver is asked. `chosen/ID` names that row, for when the volume is
 * deleted.
 */
#ifndef CONNECTIONS_FORWARD_CHOICE_ROWS_H
#define CONNECTIONS_FORWARD_CHOICE_ROWS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

char *choice_rows_key(const char *name, struct arena *arena);

/*
 * The connection that was selected for this name; NULL: none was. `*revision` is that of the row:
 * another process may choose for the same name, and the second writer gets ABORTED. UNAVAILABLE:
 * the connection is gone.
 */
MUST_CHECK struct error *choice_rows_find(struct router *router, const struct connection_set *set,
                                          const char *name, struct arena *arena,
                                          struct connection **out, uint64_t *revision);

/* A NULL `value` deletes the row. `*revision` is that of the row before, then after. */
MUST_CHECK struct error *choice_rows_write(struct router *router, const char *key,
                                           const char *value, uint64_t *revision);

/* At start: sets has_choices. */
void choice_rows_look(struct router *router);

/* The volume has been deleted: deletes its rows. */
MUST_CHECK struct error *choice_rows_forget(const struct router *router, const char *volume_id,
                                            struct arena *arena);

#endif
