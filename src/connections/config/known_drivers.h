/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the driver of each name, in rows `driver/NAME` of the store. Ids contain the name, so a
 * file that gives the name to another driver is refused, also after a restart: deletes would reach
 * the wrong storage system.
 */
#ifndef CONNECTIONS_CONFIG_KNOWN_DRIVERS_H
#define CONNECTIONS_CONFIG_KNOWN_DRIVERS_H

#include "connections/config/spec.h"
#include "store/store.h"

/*
 * Checks the name and the aliases, and remembers the driver of a new name. INVALID_ARGUMENT: a name
 * belongs to another driver. May wait.
 */
MUST_CHECK struct error *known_drivers_check(struct store *store,
                                             const struct connection_spec *spec);

/* Lets another driver use the name. NOT_FOUND: no driver ever did. May wait. */
MUST_CHECK struct error *known_drivers_forget(struct store *store, const char *name);

#endif
