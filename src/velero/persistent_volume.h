/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PersistentVolume of Kubernetes as Velero passes it: the whole object as JSON. What is not
 * changed here comes out as it went in.
 */
#ifndef VELERO_PERSISTENT_VOLUME_H
#define VELERO_PERSISTENT_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text_map.h"

struct json_value;

struct persistent_volume {
    struct json_value *root;
    /* Empty if absent; valid until the next change. */
    const char *name;
    const char *driver; /* spec.csi.driver: empty if it is not a CSI volume */
    const char *handle; /* spec.csi.volumeHandle */
};

/* INVALID_ARGUMENT: not JSON, or another kind of object. */
MUST_CHECK struct error *persistent_volume_parse(const void *json, size_t size,
                                                 struct persistent_volume *out);
/* For AUTO; also of one that is all zero. */
void persistent_volume_clear(struct persistent_volume *volume);

/* Is it a volume of this CSI driver, with a handle? */
bool persistent_volume_is_of(const struct persistent_volume *volume, const char *driver);

/* Only for volumes of a CSI driver. */
MUST_CHECK struct error *persistent_volume_set_handle(struct persistent_volume *volume,
                                                      const char *handle);

/* Empty if there is none. */
const char *persistent_volume_annotation(const struct persistent_volume *volume, const char *name);
/* `value` NULL removes it. */
MUST_CHECK struct error *persistent_volume_annotate(struct persistent_volume *volume,
                                                    const char *name, const char *value);

/*
 * Where the volume is accessible: the node has all pairs of one of the segments. None: everywhere.
 */
MUST_CHECK struct error *persistent_volume_set_nodes(struct persistent_volume *volume,
                                                     const struct text_map *segments, size_t count);

uint8_t *persistent_volume_print(const struct persistent_volume *volume, struct arena *arena,
                                 size_t *size);

#endif
