/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a volume is to be, from what was asked for: kind, size, file system, settings. Pure: touches
 * nothing.
 */
#ifndef VOLUMES_SPEC_H
#define VOLUMES_SPEC_H

#include "volumes/volume.h"

#define SPEC_DEFAULT_IMAGE_BYTES (INT64_C(1) << 30)
#define SPEC_SMALLEST_IMAGE_BYTES (INT64_C(1) << 20)
#define SPEC_LARGEST_BYTES (INT64_C(1) << 50)

struct volume_spec {
    enum volume_kind kind;
    int64_t size_bytes;
    const char *fs_type;   /* "" for raw images and trees */
    uint32_t sector_bytes; /* of an image's device; 0: as its source, or else 4096 */
    struct data_settings settings;
};

/* `source_bytes`: the least that the source's data needs; 0 without one. */
MUST_CHECK struct error *spec_make(const struct volume_request *request, int64_t source_bytes,
                                   struct volume_spec *out);

/* Keys that ControllerModifyVolume and mutable_parameters may carry, and their values. */
MUST_CHECK struct error *spec_check_mutable(const struct text_map *map, enum volume_kind kind);

/*
 * Sidecars add keys of their own to parameters; they are about Kubernetes' objects and ask for
 * nothing.
 */
bool spec_is_sidecar_key(const char *key);

/* Whether two sets of parameters ask for the same; the sidecars' keys do not count. */
bool spec_same_parameters(const struct text_map *a, const struct text_map *b);

/*
 * "consistency", of snapshots and clones: "instant", which is also the default, or "files" where a
 * copy may have each file as it was at a moment of its own. INVALID_ARGUMENT: another value.
 */
MUST_CHECK struct error *spec_check_consistency(const struct text_map *parameters);
bool spec_accepts_torn_copies(const struct text_map *parameters);

/*
 * A size within the range: the required one, or what is usual; OUT_OF_RANGE if there is none. Those
 * of images are whole sectors.
 */
MUST_CHECK struct error *spec_choose_size(enum volume_kind kind, int64_t required_bytes,
                                          int64_t limit_bytes, int64_t least_bytes,
                                          int64_t usual_bytes, int64_t *out);

#endif
