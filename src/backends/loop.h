/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop devices: an image file as a block device. Needs root.
 *
 * A file has one device at most: attaching it again, by whichever process, gives the device that it
 * has. Devices are found by the file itself, not by its path, so they are found again after a
 * restart. Of what is attached to a block device only a read-only device counts: the kubelet
 * attaches one of its own to every block volume that is published.
 */
#ifndef BACKENDS_LOOP_H
#define BACKENDS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/error.h"

#define LOOP_PATH_SIZE 32

enum loop_flags {
    LOOP_READ_ONLY = 1,
    LOOP_DIRECT_IO = 2, /* where the file system below can; 2.7 times faster here */
    LOOP_AUTOCLEAR = 4, /* the device goes when its last user does: a mount, or `fd` */
    LOOP_OWN_NAME =
        8, /* a device of its own, whose name no other device's begins with, now or later */
    LOOP_SMALL_BLOCKS = 16, /* of 512 bytes; else 4096 */
};

struct loop_device {
    char path[LOOP_PATH_SIZE]; /* /dev/loop7 */
    int fd;                    /* the device, open; the caller closes it */
};

/*
 * FAILED_PRECONDITION if the file has a device that writes and a read-only one is wanted, or the
 * other way round. LOOP_DIRECT_IO and the flags below it say how a new device is made; one that is
 * there stays as it is, but it stays also when its last user goes unless LOOP_AUTOCLEAR is given.
 */
MUST_CHECK struct error *loop_attach(const char *file, unsigned flags, struct loop_device *out);

/* NOT_FOUND if the file has no device. */
MUST_CHECK struct error *loop_find(const char *file, struct loop_device *out);

/*
 * The device of a file that may have been removed, by a directory in its path that no other has;
 * NOT_FOUND if there is none.
 */
MUST_CHECK struct error *loop_find_below(const char *directory, struct loop_device *out);

/* The device goes now, or when its last user does. That the file has none is success. */
MUST_CHECK struct error *loop_detach(const char *file);

/* The device gets the size that its file has now. */
MUST_CHECK struct error *loop_resize(const struct loop_device *device);

/*
 * Every device that has a file; `file` as the kernel tells it, with " (deleted)" behind it if it
 * is.
 */
typedef struct error *loop_found(void *context, const char *device, const char *file);
MUST_CHECK struct error *loop_list(loop_found *found, void *context);

/* The device itself, whatever its file: it goes now, or when its last user does. */
MUST_CHECK struct error *loop_drop(const char *device);

/*
 * Whether it is one as LOOP_OWN_NAME gives: "/dev/loop200007", but not "/dev/loop7", with which
 * /dev/loop70 begins.
 */
bool loop_has_own_name(const char *device);

/*
 * Devices as LOOP_OWN_NAME gives are removed from the kernel if they have no file and nobody has
 * them open.
 */
void loop_remove_unused(void);

/* Closes `fd`. Also for `struct loop_device device AUTO(loop_release) = LOOP_NONE`. */
void loop_release(struct loop_device *device);
#define LOOP_NONE                                                                                  \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

#endif
