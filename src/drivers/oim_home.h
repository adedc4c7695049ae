/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a connection to OIM keeps on this node. When its options change the driver is opened anew
 * while calls still run on the old one: both have the same rows, and one's request for a volume
 * waits for the other's. So there is one home for a directory in the process, shared.
 */
#ifndef DRIVERS_OIM_HOME_H
#define DRIVERS_OIM_HOME_H

#include "store/store.h"
#include "volumes/name_locks.h"

struct oim_home {
    struct oim_home *next;
    char *directory;
    unsigned references;
    struct store *store;
    struct name_locks locks;
};

/*
 * The directory is made if it is missing; the one above it must be there. Any thread but the
 * loop's.
 */
MUST_CHECK struct error *oim_home_open(const char *directory, struct oim_home **out);

/* Who is last closes the store. NULL is fine. */
void oim_home_close(struct oim_home *home);

#endif
