/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What drivers reported last, in rows `facts/NAME` of the process' own store. After a restart,
 * capabilities and NodeGetInfo use it until the driver is reached again, so that one driver that is
 * down does not prevent a node from registering.
 */
#ifndef CONNECTIONS_CONFIG_KNOWN_FACTS_H
#define CONNECTIONS_CONFIG_KNOWN_FACTS_H

#include "connections/config/connection.h"
#include "store/store.h"

/*
 * What the driver at the endpoints of this file reported. NULL: nothing is stored, or it cannot be
 * read, which is logged. May wait.
 */
struct driver_facts *known_facts_read(struct store *store, const struct connection_spec *spec,
                                      const struct log *log);

/* Writes what drivers that were reached report, if it has changed. Durable. May wait. */
MUST_CHECK struct error *known_facts_write(struct store *store, const struct connection_set *set,
                                           struct arena *arena);

#endif
