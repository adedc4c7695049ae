/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a driver keeps what is its own, for those that keep something: DATA/connections/NAME. A
 * connection that was renamed goes on with the directory of its old name, which must be an alias
 * then; from the first time on a link leads there, so that the alias may go.
 */
#ifndef DRIVERS_OWN_DIRECTORY_H
#define DRIVERS_OWN_DIRECTORY_H

#include "base/arena.h"
#include "drivers/driver.h"

/* Without links, in the arena. What is above it is made, it itself is not. */
MUST_CHECK struct error *own_directory_find(const struct driver_options *options,
                                            struct arena *arena, const char **out);

#endif
