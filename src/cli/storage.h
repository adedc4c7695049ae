/* SPDX-License-Identifier: Apache-2.0 */
/* The store, the back end and the engine of a data directory, opened and closed together. */
#ifndef CLI_STORAGE_H
#define CLI_STORAGE_H

#include "volumes/engine.h"

struct storage_options {
    const char *directory; /* made if missing */
    const char *backend;   /* "auto", or its name */
    const char *pool_size; /* NULL: as large as may be; else like 100Gi */
    const char *node_id;
    const struct log *log;
};

struct storage {
    struct store *store;
    struct backend *backend;
    struct engine *engine;
};

MUST_CHECK struct error *storage_open(const struct storage_options *options, struct storage *out);

/* Also what storage_open has left after an error. */
void storage_close(struct storage *storage);

#endif
