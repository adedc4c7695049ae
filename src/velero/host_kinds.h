/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin binary lists: kinds and names of plugins. */
#ifndef VELERO_HOST_KINDS_H
#define VELERO_HOST_KINDS_H

#include <stdbool.h>

enum host_kind {
    HOST_KIND_UNKNOWN, /* no release of Velero has it, nor have we */
    HOST_KIND_KNOWN,   /* for a backup server; this host does not run it */
    HOST_KIND_SNAPSHOTTER,
    HOST_KIND_SNAPSHOTTER_V2,
};

enum host_kind host_kinds_find(const char *kind);

/*
 * "domain/name": one '/', the domain a DNS subdomain of at most 253 bytes, the name not empty and
 * of at most 253 bytes, without control characters.
 */
bool host_kinds_is_name(const char *name);

#endif
