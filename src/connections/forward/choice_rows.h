/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections that labels have selected for new volumes. The row `choice/NAME` names the
 * connection and is written before its driver is called. The row `chosen/ID` names that row, so
 * that the deletion of the volume finds it.
 *
 * The rows are in the store that all processes share. In a cluster that is the registry, and a
 * deletion should not need it. So a volume of ours that has rows there has a mark in its handle
 * (volumes/handle.h). Nobody knows whether the volumes of other drivers have.
 */
#ifndef CONNECTIONS_FORWARD_CHOICE_ROWS_H
#define CONNECTIONS_FORWARD_CHOICE_ROWS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"

char *choice_rows_key(const char *name, struct arena *arena);

/*
 * The connection that was selected for this name; NULL: none. `*revision` is that of the row: if
 * another process selects for the same name, the second writer gets ABORTED. UNAVAILABLE: the
 * connection is gone.
 */
MUST_CHECK struct error *choice_rows_find(struct router *router, const struct connection_set *set,
                                          const char *name, struct arena *arena,
                                          struct connection **out, uint64_t *revision);

/* A NULL `value` deletes the row. Updates `*revision`. */
MUST_CHECK struct error *choice_rows_write(struct router *router, const char *key,
                                           const char *value, uint64_t *revision);

/* At start: sets has_choices. */
void choice_rows_look(struct router *router);

/* May a volume with this handle have rows in a store that is not this process' own? */
bool choice_rows_are_shared(const struct router *router, const struct connection *connection,
                            const char *handle);

/* The volume has been deleted: deletes its rows; `are_shared` as above. */
MUST_CHECK struct error *choice_rows_forget(const struct router *router, const char *volume_id,
                                            bool are_shared, struct arena *arena);

#endif
