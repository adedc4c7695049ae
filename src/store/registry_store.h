/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of rows that a registry keeps for a cluster, for both sides of skycap.v1.ClusterStore:
 * this room's store "registry://HOST:PORT[/PREFIX]" and the registry.
 */
#ifndef STORE_REGISTRY_STORE_H
#define STORE_REGISTRY_STORE_H

#include "store/store.h"

/* The registry's own keys of the rows begin with it. The row with this key alone is the mark. */
#define REGISTRY_STORE_PREFIX "cluster/"

#define REGISTRY_STORE_MAX_KEY (STORE_MAX_KEY - (int)(sizeof REGISTRY_STORE_PREFIX - 1))
#define REGISTRY_STORE_MAX_VALUE (64u * 1024)
#define REGISTRY_STORE_MAX_CHANGES 16 /* of one write */

/* Whether the URL is that of a store on a registry which is not on this machine. */
bool registry_store_is_remote(const char *url);

/* INVALID_ARGUMENT: it is empty, or too long. */
MUST_CHECK struct error *registry_store_check_key(const char *key);

/* INVALID_ARGUMENT: the write exceeds a limit. */
MUST_CHECK struct error *registry_store_check_changes(const struct store_change *changes,
                                                      size_t count);

#endif
