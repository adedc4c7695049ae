/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a plugin. */
#ifndef VELERO_HOST_ENVIRONMENT_H
#define VELERO_HOST_ENVIRONMENT_H

#include "base/arena.h"

/*
 * Our own environment, with the variables by which a plugin knows its host. It ends with NULL and
 * lives in the arena. `certificate`: PEM, for mutual TLS; NULL: none.
 */
const char *const *host_environment_make(const char *directory, const char *certificate,
                                         struct arena *arena);

#endif
