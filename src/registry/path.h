/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in the registry. A path is elements with one slash between them; "ID/address" is where the
 * controller ID answers.
 */
#ifndef REGISTRY_PATH_H
#define REGISTRY_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define PATH_MAX_BYTES 480
#define PATH_MAX_ID_BYTES 200

/*
 * The normal form, in the arena: slashes in front, behind and doubled are dropped, so the result
 * may be empty. INVALID_ARGUMENT: an element is "." or "..", it is too long, or it is no UTF-8.
 */
MUST_CHECK struct error *path_normalize(const char *text, struct arena *arena, const char **out);

/* INVALID_ARGUMENT: this can be no controller's id. */
MUST_CHECK struct error *path_check_id(const char *id);

/* Of a normal path: is it "ID/address"? Then `*id_size` is the length of ID. */
bool path_is_address(const char *path, size_t *id_size);

/* Of normal paths: is it `prefix`, or below it? Everything is below "". */
bool path_is_below(const char *path, const char *prefix);

char *path_of_address(const char *id, struct arena *arena);

#endif
