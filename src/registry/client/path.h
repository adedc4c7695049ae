/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths in the registry: elements separated by slashes. "ID/address" holds the address of the
 * controller ID, "nodes/ID/address" that of the node ID.
 */
#ifndef REGISTRY_CLIENT_PATH_H
#define REGISTRY_CLIENT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define PATH_MAX_BYTES 480
#define PATH_MAX_ID_BYTES 200
#define PATH_MAX_NODE_ID_BYTES 128

#define PATH_NODES "nodes" /* the nodes are below it */

/*
 * The normalized path, in the arena: leading, trailing and double slashes are dropped, so it may be
 * empty. INVALID_ARGUMENT: an element is "." or "..", it is too long, or not valid UTF-8.
 */
MUST_CHECK struct error *path_normalize(const char *text, struct arena *arena, const char **out);

/* INVALID_ARGUMENT: not a valid id of a controller, or of a node. */
MUST_CHECK struct error *path_check_id(const char *id);
MUST_CHECK struct error *path_check_node_id(const char *id);

/* Whether the normalized path is "ID/address"; `*id_size` becomes the length of ID. */
bool path_is_address(const char *path, size_t *id_size);

/* Whether it is "nodes/ID/address": then its ID, of `*id_size` bytes. NULL: it is not. */
const char *path_find_node(const char *path, size_t *id_size);

/* Whether the path is `prefix`, or below it. Everything is below "". */
bool path_is_below(const char *path, const char *prefix);

char *path_of_address(const char *id, struct arena *arena);
char *path_of_node(const char *id, struct arena *arena);

#endif
