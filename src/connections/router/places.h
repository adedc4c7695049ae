/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache: at which place handles are whose home does not tell, or is not where they are. What is
 * overwritten or wrong is found again. Any thread; never waits.
 */
#ifndef CONNECTIONS_ROUTER_PLACES_H
#define CONNECTIONS_ROUTER_PLACES_H

#include "connections/config/connection.h"

struct places;

struct places *places_new(void);
/* NULL is fine. */
void places_free(struct places *places);

/* NULL: not known, or not in the set any more. */
struct connection *places_find(struct places *places, const struct connection_set *set,
                               const char *handle);
void places_set(struct places *places, const char *handle, const char *place);
void places_forget(struct places *places, const char *handle);

#endif
