/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accelerator makes block devices appear on this host, for the OIM controller. A new one is one
 * file with a `const struct accelerator_ops`, and one line in the table of accelerator.c.
 *
 * All functions may block until `deadline_ns` (CLOCK_MONOTONIC). Calls for one volume never
 * overlap. Names have 1 to ACCELERATOR_NAME_MAX bytes of UTF-8 without control characters; they may
 * not be valid file names. NOT_FOUND means that something is known not to exist; an accelerator
 * that does not answer is UNAVAILABLE.
 */
#ifndef OIM_ACCELERATOR_H
#define OIM_ACCELERATOR_H

#include <stdint.h>

#include "base/error.h"
#include "base/log.h"

#define ACCELERATOR_NAME_MAX 200

struct accelerator_options {
    const char *spdk_socket;
    const char *vhost_controller;
    const char *vhost_device;
    const char *data_directory;
    const struct log *log;
};

struct ceph_image {
    const char *user_id; /* "": the target's default */
    const char *secret;  /* never logged or quoted in an error */
    const char *monitors;
    const char *pool;
    const char *image;
};

/* How to find the device below /sys/dev/block: MapVolumeReply. */
struct mapping {
    char device[64]; /* a part of the link's target */
    char scsi[24];   /* "target:lun", or "" */
};

struct accelerator {
    const struct accelerator_ops *ops;
};

/* All functions are idempotent. */
struct accelerator_ops {
    const char *name;

    /* INVALID_ARGUMENT: an option is wrong. Does not connect yet. */
    struct error *(*open)(const struct accelerator_options *options, struct accelerator **out);
    void (*close)(struct accelerator *accelerator);

    /*
     * Creates a block device in memory. The size is a multiple of 512, and not 0. ALREADY_EXISTS:
     * there is one of another size.
     */
    struct error *(*provision)(struct accelerator *accelerator, const char *name,
                               uint64_t size_bytes, uint64_t deadline_ns);
    /* FAILED_PRECONDITION: it is mapped. */
    struct error *(*remove)(struct accelerator *accelerator, const char *name,
                            uint64_t deadline_ns);
    /* NOT_FOUND: there is none. */
    struct error *(*check)(struct accelerator *accelerator, const char *name, uint64_t deadline_ns);

    /*
     * Maps a block device in memory. NOT_FOUND: there is none. ALREADY_EXISTS: the volume is mapped
     * as something else.
     */
    struct error *(*map_malloc)(struct accelerator *accelerator, const char *volume,
                                uint64_t deadline_ns, struct mapping *out);
    /* ALREADY_EXISTS: mapped with other parameters. NULL: not supported. */
    struct error *(*map_ceph)(struct accelerator *accelerator, const char *volume,
                              const struct ceph_image *image, uint64_t deadline_ns,
                              struct mapping *out);
    struct error *(*unmap)(struct accelerator *accelerator, const char *volume,
                           uint64_t deadline_ns);
};

extern const struct accelerator_ops accelerator_kernel;
extern const struct accelerator_ops accelerator_spdk;

/* `name` NULL: the default. INVALID_ARGUMENT: unknown; the error lists the names. */
MUST_CHECK struct error *accelerator_find(const char *name, const struct accelerator_ops **out);

#endif
