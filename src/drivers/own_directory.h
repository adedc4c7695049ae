/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a connection's own data: DATA/connections/NAME. A renamed connection continues
 * with the directory of its old name, which must be an alias. A link to it is created, so that the
 * alias can be removed later.
 */
#ifndef DRIVERS_OWN_DIRECTORY_H
#define DRIVERS_OWN_DIRECTORY_H

#include "base/arena.h"
#include "drivers/driver.h"

/* The path without links. Creates the parent, but not the directory itself. */
MUST_CHECK struct error *own_directory_find(const struct driver_options *options,
                                            struct arena *arena, const char **out);

#endif
