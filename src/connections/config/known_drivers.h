/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver a name has stood for: rows `driver/NAME` of the store. Ids with the name are of that
 * driver's volumes, so a file that gives the name to another driver is refused, also after a
 * restart: deletes would reach the wrong storage system.
 */
#ifndef CONNECTIONS_CONFIG_KNOWN_DRIVERS_H
#define CONNECTIONS_CONFIG_KNOWN_DRIVERS_H

#include "connections/config/spec.h"
#include "store/store.h"

/*
 * By its name and its aliases; remembers the driver of the name if none is yet. INVALID_ARGUMENT:
 * it was another, and what to do. May wait.
 */
MUST_CHECK struct error *known_drivers_check(struct store *store,
                                             const struct connection_spec *spec);

/*
 * The name may stand for another driver from now on. NOT_FOUND: it has never stood for one. May
 * wait.
 */
MUST_CHECK struct error *known_drivers_forget(struct store *store, const char *name);

#endif
