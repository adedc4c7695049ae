/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of CSI requests: required fields, sizes, names, capabilities. All return INVALID_ARGUMENT.
 */
#ifndef CSI_CHECKS_H
#define CSI_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "proto/csi.pb-c.h"

MUST_CHECK struct error *checks_present(const char *field, const char *value);

/* Not empty, at most 128 bytes. */
MUST_CHECK struct error *checks_id(const char *field, const char *value);

/* As an id, and without control characters. */
MUST_CHECK struct error *checks_name(const char *field, const char *value);

/* Absolute, without "..", not longer than PATH_MAX. */
MUST_CHECK struct error *checks_path(const char *field, const char *value);

/* Not empty, at most 256 bytes. */
MUST_CHECK struct error *checks_node_id(const char *field, const char *value);

/* Every map<string, string> of the request has at most 4 KiB: parameters, contexts, secrets. */
MUST_CHECK struct error *checks_maps(const ProtobufCMessage *request);

MUST_CHECK struct error *checks_capacity(const Csi__V1__CapacityRange *range);

MUST_CHECK struct error *checks_capability(const Csi__V1__VolumeCapability *capability);
MUST_CHECK struct error *checks_capabilities(Csi__V1__VolumeCapability *const *capabilities,
                                             size_t count);

/* Everything but the parameters and the source. */
MUST_CHECK struct error *checks_create(const Csi__V1__CreateVolumeRequest *request);
MUST_CHECK struct error *checks_stage(const Csi__V1__NodeStageVolumeRequest *request);
MUST_CHECK struct error *checks_publish(const Csi__V1__NodePublishVolumeRequest *request);

#endif
