/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of volumes file by file. They are made in making/ (layout.h) and moved to their place when
 * they are complete and durable, so that an interrupted copy is never mistaken for a volume. One
 * that saves its position (struct progress) goes on in making/ after a restart.
 */
#ifndef BACKENDS_COPYING_H
#define BACKENDS_COPYING_H

#include "backends/backend.h"

/* What differs between the back ends that copy file by file: their ops->copying. */
struct copying {
    /* Makes the empty content (layout.h) in the holder and opens it; `size_bytes` is its limit. */
    struct error *(*make)(struct backend *backend, int holder, const struct data *data,
                          uint64_t size_bytes, int *content);
    /* Removes the holder at this path with everything in it. */
    struct error *(*drop)(struct backend *backend, const char *path);
    /* The copy is complete; makes a snapshot read-only, unless seals do. May be NULL. */
    struct error *(*finish)(struct backend *backend, const struct data *data, int content);
    bool seals; /* snapshots are made read-only file by file */
};

/* The create, copy and remove of these back ends. */
MUST_CHECK struct error *copying_create(struct backend *backend, const struct data *data,
                                        const struct data_settings *settings);
MUST_CHECK struct error *copying_run(struct backend *backend, const struct data *from,
                                     const struct data *to, const struct data_settings *settings,
                                     const struct progress *progress);
/* Removes incomplete copies too. */
MUST_CHECK struct error *copying_remove(struct backend *backend, const struct data *data);

/*
 * Fills the image `to` from `from`, and grows it to `size_bytes` if that is more; durable when it
 * returns. With a position, `to` is what an earlier attempt has made.
 */
MUST_CHECK struct error *copying_fill_image(int from, int to, uint64_t size_bytes,
                                            const struct progress *progress);

/* Grows a sparse image. OUT_OF_RANGE if it is larger already; 0 leaves it as it is. */
MUST_CHECK struct error *copying_grow_image(int image, uint64_t size_bytes);

MUST_CHECK struct error *copying_is_smaller(int image, uint64_t size_bytes, bool *is_smaller);

/*
 * Fills the directory `to`, which is empty without a position; durable when it returns, except for
 * the seals.
 */
MUST_CHECK struct error *copying_fill_tree(int from, int to, bool seal,
                                           const struct progress *progress);

#endif
