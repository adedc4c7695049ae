/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML, and so JSON, as a tree of settings. What has no place in settings is refused, with its
 * line: anchors and aliases, tags, several documents, a key twice in a map, keys that are no texts,
 * keys without a value, texts with NUL; and a file that is too deep or too large.
 */
#ifndef CONNECTIONS_CONFIG_YAML_H
#define CONNECTIONS_CONFIG_YAML_H

#include <stddef.h>

#include "base/settings.h"

#define YAML_MAX_DEPTH 16
#define YAML_MAX_NODES 10000 /* texts, lists and maps, keys included */

/*
 * The tree is in the arena, also in part after an error. A file with nothing in it is an empty map.
 */
MUST_CHECK struct error *yaml_read(const char *text, size_t size, struct arena *arena,
                                   const struct setting **out);

#endif
