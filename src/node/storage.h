/* SPDX-License-Identifier: Apache-2.0 */
/* The store, the back end and the engine of a data directory, opened and closed together. */
#ifndef NODE_STORAGE_H
#define NODE_STORAGE_H

#include <limits.h>

#include "base/text_map.h"
#include "volumes/engine.h"

struct storage_options {
    const char *directory;     /* created if missing */
    struct text_list backends; /* names, or "auto"; none: "auto". The first is the default */
    const char *pool_device;   /* NULL: the one that the pool is on already, or a file */
    const char *pool_size;     /* NULL: chooses; else a size such as 100Gi */
    bool pool_is_allocated;
    bool may_switch_quotas_on;
    const char *node_id;
    struct text_map topology; /* of the node, beside its id */
    bool is_in_cluster;
    const struct log *log;
    bool is_passive;                              /* removes and repairs nothing */
    const struct repository_places *repositories; /* NULL: none */
};

struct storage {
    struct store *store;
    struct backend *backend;
    struct engine *engine;
    char boot_id[64];
    char cache_directory[PATH_MAX];
};

/* The absolute path of the data directory, which is created if missing. */
MUST_CHECK struct error *storage_find_directory(const char *directory, char out[PATH_MAX]);

/* Store and back end, without an engine. */
MUST_CHECK struct error *storage_open_parts(const struct storage_options *options,
                                            struct storage *out);

/* Renames the store, whatever its state; see store_set_aside. */
MUST_CHECK struct error *storage_set_store_aside(const struct storage_options *options,
                                                 struct arena *arena, const char **moved_to);

MUST_CHECK struct error *storage_open(const struct storage_options *options, struct storage *out);

/* Also called after storage_open has failed. */
void storage_close(struct storage *storage);

#endif
