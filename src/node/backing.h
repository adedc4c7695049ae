/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is below the mounts of a volume: its directory, or its image file and the loop devices upon
 * it. It is looked up once for a request, and passed down.
 *
 * The loop device of a mounted file system is detached by the kernel with the mount. That of a raw
 * image has no such user: it stays until the volume is unstaged, and the doctor detaches those that
 * a crash has left.
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
    struct loop_device own;    /* of the image; `fd` is -1 if it has none */
    struct loop_device reader; /* read-only, upon `own`; looked up when it is asked for */
};

#define BACKING_NONE                                                                               \
    {                                                                                              \
        .own = LOOP_NONE, .reader = LOOP_NONE                                                      \
    }

/*
 * For `struct backing backing AUTO(backing_clear) = BACKING_NONE`. Data that is gone is no error.
 */
MUST_CHECK struct error *backing_find(struct engine *engine, const volume_record *volume,
                                      struct backing *out);
void backing_clear(struct backing *backing);

/* The read-only device, in `backing->reader`; its `fd` stays -1 if there is none. */
MUST_CHECK struct error *backing_find_reader(struct backing *backing);

/* Whether what is mounted at the path is this volume. */
MUST_CHECK struct error *backing_is_at(struct backing *backing, const char *path, bool *is_there);

/* The device of an image, attached if it has none. `flags` as loop_attach takes them. */
MUST_CHECK struct error *backing_attach(struct engine *engine, const volume_record *volume,
                                        unsigned flags, struct loop_device *out);

/* The device that a block volume is published by: its own, or a read-only one upon that. */
MUST_CHECK struct error *backing_attach_published(const volume_record *volume,
                                                  struct backing *backing, bool read_only,
                                                  const char **device);

/* The devices are detached, at the latest with their last user. */
MUST_CHECK struct error *backing_detach(struct backing *backing);
MUST_CHECK struct error *backing_detach_reader(struct backing *backing);

/* All of them, unless one is bound to a path that no row tells of. */
MUST_CHECK struct error *backing_detach_unbound(struct backing *backing);

/* What was written to the device of an image is in the image, durably. */
MUST_CHECK struct error *backing_flush(struct backing *backing);

/* The devices take the size that the image has now. */
MUST_CHECK struct error *backing_resize(struct backing *backing);

#endif
