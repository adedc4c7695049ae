/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is below the mounts of a volume: its directory, or its image file and the loop devices on
 * it. Looked up once per request and passed down.
 *
 * The kernel detaches the loop device of a mounted file system with the mount. That of a raw image
 * has no such user: it stays until the volume is unstaged. The doctor detaches those that a crash
 * has left.
 */
#ifndef NODE_BACKING_H
#define NODE_BACKING_H

#include <limits.h>

#include "backends/loop.h"
#include "volumes/rows.h"

struct backing {
    char path[PATH_MAX]; /* the directory or the image file; "": it is gone */
    bool is_image;
    bool knows_reader;
    struct loop_device own;    /* of the image; `fd` is -1 if there is none */
    struct loop_device reader; /* a read-only device on top of `own`; looked up on demand */
};

#define BACKING_NONE                                                                               \
    {                                                                                              \
        .own = LOOP_NONE, .reader = LOOP_NONE                                                      \
    }

/* For `struct backing backing AUTO(backing_clear) = BACKING_NONE`. Missing data is not an error. */
MUST_CHECK struct error *backing_find(struct engine *engine, const volume_record *volume,
                                      struct backing *out);
void backing_clear(struct backing *backing);

/* Looks up the read-only device, `backing->reader`; its `fd` stays -1 if there is none. */
MUST_CHECK struct error *backing_find_reader(struct backing *backing);

/* Whether this volume is mounted at the path. */
MUST_CHECK struct error *backing_is_at(struct backing *backing, const char *path, bool *is_there);

/* The device of an image; attaches one if there is none. `flags` as for loop_attach. */
MUST_CHECK struct error *backing_attach(struct engine *engine, const volume_record *volume,
                                        unsigned flags, struct loop_device *out);

/* The device by which a block volume is published: its own, or a read-only one on top of it. */
MUST_CHECK struct error *backing_attach_published(const volume_record *volume,
                                                  struct backing *backing, bool read_only,
                                                  const char **device);

/* Detaches the devices, at the latest when their last user closes them. */
MUST_CHECK struct error *backing_detach(struct backing *backing);
MUST_CHECK struct error *backing_detach_reader(struct backing *backing);

/* Detaches all of them, unless one is bound to a path that has no row. */
MUST_CHECK struct error *backing_detach_unbound(struct backing *backing);

/* Makes what was written to the device durable in the image. */
MUST_CHECK struct error *backing_flush(struct backing *backing);

/* Gives the devices the current size of the image. */
MUST_CHECK struct error *backing_resize(struct backing *backing);

#endif
