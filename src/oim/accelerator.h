/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the OIM controller drives: something that makes block devices appear on this host. A new one
 * is one file with a `const struct accelerator_ops`, and one line in the table of accelerator.c.
 *
 * All functions may block, until `deadline_ns` (of CLOCK_MONOTONIC) at most; calls for one volume
 * never overlap. Names are 1 to ACCELERATOR_NAME_MAX bytes of UTF-8 without control characters, and
 * nothing else: they are no file names. Absent is not broken: only what is known not to be there is
 * NOT_FOUND; an accelerator that does not answer is UNAVAILABLE.
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
    const char *secret;  /* never logged, nor part of an error */
    const char *monitors;
    const char *pool;
    const char *image;
};

/* How to find what was mapped below /sys/dev/block: MapVolumeReply. */
struct mapping {
    char device[64]; /* a part of the link's target */
    char scsi[24];   /* "target:lun", or "" */
};

struct accelerator {
    const struct accelerator_ops *ops;
};

/* Each does nothing where it is done already. */
struct accelerator_ops {
    const char *name;

    /* INVALID_ARGUMENT: an option is wrong. Does not wait for the accelerator. */
    struct error *(*open)(const struct accelerator_options *options, struct accelerator **out);
    void (*close)(struct accelerator *accelerator);

    /*
     * A block device in memory. ALREADY_EXISTS: there is one of another size. The size is a
     * multiple of 512, and not 0.
     */
    struct error *(*provision)(struct accelerator *accelerator, const char *name,
                               uint64_t size_bytes, uint64_t deadline_ns);
    /* FAILED_PRECONDITION: it is mapped. */
    struct error *(*remove)(struct accelerator *accelerator, const char *name,
                            uint64_t deadline_ns);
    /* NOT_FOUND: there is none. */
    struct error *(*check)(struct accelerator *accelerator, const char *name, uint64_t deadline_ns);

    /*
     * A block device in memory becomes one of the host. NOT_FOUND: there is none; ALREADY_EXISTS:
     * the volume is mapped as something else.
     */
    struct error *(*map_malloc)(struct accelerator *accelerator, const char *volume,
                                uint64_t deadline_ns, struct mapping *out);
    /* ALREADY_EXISTS: the volume is mapped with other parameters. NULL: cannot. */
    struct error *(*map_ceph)(struct accelerator *accelerator, const char *volume,
                              const struct ceph_image *image, uint64_t deadline_ns,
                              struct mapping *out);
    struct error *(*unmap)(struct accelerator *accelerator, const char *volume,
                           uint64_t deadline_ns);
};

extern const struct accelerator_ops accelerator_kernel;
extern const struct accelerator_ops accelerator_spdk;

/*
 * NULL: the default. INVALID_ARGUMENT: there is none of this name; the error names those that there
 * are.
 */
MUST_CHECK struct error *accelerator_find(const char *name, const struct accelerator_ops **out);

#endif
