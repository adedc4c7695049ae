/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop devices: an image file as a block device. Needs root.
 *
 * A file has at most one device: attaching it again, by any process, gives the same device. Devices
 * are found by the file itself, not by its path, so they are found again after a restart. Of
 * devices on top of a block device only read-only ones count: the kubelet attaches its own to every
 * published block volume.
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
    LOOP_DIRECT_IO = 2,     /* if the file system supports it; 2.7 times faster here */
    LOOP_AUTOCLEAR = 4,     /* the device is removed with its last user: a mount, or `fd` */
    LOOP_OWN_NAME = 8,      /* a new device whose name is not a prefix of any other device's name */
    LOOP_SMALL_BLOCKS = 16, /* of 512 bytes; else 4096 */
};

struct loop_device {
    char path[LOOP_PATH_SIZE]; /* /dev/loop7 */
    int fd;                    /* the open device; the caller closes it */
};

/*
 * FAILED_PRECONDITION if the file has a writable device and a read-only one is wanted, or the
 * reverse. LOOP_DIRECT_IO and the flags below apply only to a new device. An existing device stays
 * as it is, except that without LOOP_AUTOCLEAR it no longer disappears with its last user.
 */
MUST_CHECK struct error *loop_attach(const char *file, unsigned flags, struct loop_device *out);

/* NOT_FOUND if the file has no device. */
MUST_CHECK struct error *loop_find(const char *file, struct loop_device *out);

/*
 * The device of a file that may have been removed, found by a directory in its path that is unique;
 * NOT_FOUND if there is none.
 */
MUST_CHECK struct error *loop_find_below(const char *directory, struct loop_device *out);

/* Detaches the device now, or when its last user closes it. Success if the file has none. */
MUST_CHECK struct error *loop_detach(const char *file);

/* Gives the device the current size of its file. */
MUST_CHECK struct error *loop_resize(const struct loop_device *device);

/*
 * Called for every attached device; `file` is as the kernel reports it, followed by " (deleted)" if
 * it is.
 */
typedef struct error *loop_found(void *context, const char *device, const char *file);
MUST_CHECK struct error *loop_list(loop_found *found, void *context);

/* Detaches the device, whatever its file, now or when its last user closes it. */
MUST_CHECK struct error *loop_drop(const char *device);

/*
 * Whether it is a device as made with LOOP_OWN_NAME: "/dev/loop200007", but not "/dev/loop7", which
 * is a prefix of /dev/loop70.
 */
bool loop_has_own_name(const char *device);

/* Removes devices made with LOOP_OWN_NAME from the kernel if they have no file and are not open. */
void loop_remove_unused(void);

/* Closes `fd`. Also for `struct loop_device device AUTO(loop_release) = LOOP_NONE`. */
void loop_release(struct loop_device *device);
#define LOOP_NONE                                                                                  \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

#endif
