/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives what a volume should be from the request: kind, size, file system, settings. Pure
 * functions.
 */
#ifndef VOLUMES_SPEC_H
#define VOLUMES_SPEC_H

#include "volumes/parameter_table.h"
#include "volumes/volume.h"

#define SPEC_DEFAULT_IMAGE_BYTES (INT64_C(1) << 30)
#define SPEC_SMALLEST_IMAGE_BYTES (INT64_C(1) << 20)
#define SPEC_LARGEST_BYTES (INT64_C(1) << 50)

struct volume_spec {
    enum volume_kind kind;
    int64_t size_bytes;
    const char *fs_type;   /* "" for raw images and trees */
    uint32_t sector_bytes; /* of an image's device; 0: as its source, else 4096 */
    struct data_settings settings;
};

/* `source_bytes`: the minimum that the source's data needs; 0 without a source. */
MUST_CHECK struct error *spec_make(const struct volume_request *request, int64_t source_bytes,
                                   struct volume_spec *out);

/* Checks the keys and values in ControllerModifyVolume and in mutable_parameters. */
MUST_CHECK struct error *spec_check_mutable(const struct text_map *map, enum volume_kind kind);

/*
 * Sidecars add keys of their own to the parameters. They describe Kubernetes objects and ask for
 * nothing.
 */
bool spec_is_sidecar_key(const char *key);

/* Whether two sets of parameters ask for the same, ignoring the sidecars' keys. */
bool spec_same_parameters(const struct text_map *a, const struct text_map *b);

/* Checks the parameters of a snapshot. INVALID_ARGUMENT: an unknown one, or a wrong value. */
MUST_CHECK struct error *spec_check_snapshot(const struct text_map *parameters);

/*
 * Bytes per second that are fetched at most if the volume is made from a source on another node; 0:
 * no limit.
 */
uint64_t spec_transfer_rate(const struct text_map *parameters);
bool spec_accepts_torn_copies(const struct text_map *parameters);

/*
 * Chooses a size within the range: the required one, else the default; OUT_OF_RANGE if there is
 * none. Images have whole sectors.
 */
MUST_CHECK struct error *spec_choose_size(enum volume_kind kind, int64_t required_bytes,
                                          int64_t limit_bytes, int64_t least_bytes,
                                          int64_t usual_bytes, int64_t *out);

#endif
