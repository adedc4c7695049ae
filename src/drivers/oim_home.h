/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store and the locks of a connection to OIM, shared by all its drivers in the process. When
 * options change, the new driver opens while calls still run on the old one; both use the same
 * rows, and requests for a volume wait for each other.
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

/* Creates the directory if it is missing, but not its parent. Any thread but the loop's. */
MUST_CHECK struct error *oim_home_open(const char *directory, struct oim_home **out);

/* The last reference closes the store. NULL is fine. */
void oim_home_close(struct oim_home *home);

#endif
