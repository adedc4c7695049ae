/* SPDX-License-Identifier: Apache-2.0 */
/* How full a volume is. */
#ifndef NODE_USAGE_H
#define NODE_USAGE_H

#include "volumes/rows.h"

struct usage_figures {
    int64_t available;
    int64_t total;
    int64_t used;
};

struct volume_usage {
    struct usage_figures bytes;
    struct usage_figures inodes;
    bool knows_inodes;
    bool is_block; /* only bytes.total is meaningful */
};

/* As seen at `path`, where it is staged or published. */
MUST_CHECK struct error *usage_measure(struct engine *engine, const volume_record *volume,
                                       const char *path, struct volume_usage *out);

#endif
