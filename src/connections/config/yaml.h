/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads YAML, and so JSON, as a tree of settings. Refused, with the line: anchors and aliases,
 * tags, several documents, duplicate keys, keys that are no text or have no value, NUL bytes, and
 * files that are too deep or too large.
 */
#ifndef CONNECTIONS_CONFIG_YAML_H
#define CONNECTIONS_CONFIG_YAML_H

#include <stddef.h>

#include "base/settings.h"

#define YAML_MAX_DEPTH 16
#define YAML_MAX_NODES 10000 /* texts, lists and maps, keys included */

/* The tree is in the arena. An empty file is an empty map. */
MUST_CHECK struct error *yaml_read(const char *text, size_t size, struct arena *arena,
                                   const struct setting **out);

#endif
