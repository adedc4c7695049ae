/* SPDX-License-Identifier: Apache-2.0 */
/* The ids on one page of a list, so that none is there twice. One thread. */
#ifndef CONNECTIONS_ROUTER_LISTED_ONCE_H
#define CONNECTIONS_ROUTER_LISTED_ONCE_H

#include "base/arena.h"

struct listed_once;

/* For up to `most` ids, in the arena. */
struct listed_once *listed_once_new(size_t most, struct arena *arena);

/*
 * The entry at this position of the page has this id, which must live as long. False: an entry
 * before has it, and `*at` becomes the position of that one.
 */
bool listed_once_add(struct listed_once *once, const char *id, size_t *at);

#endif
