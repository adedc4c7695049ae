/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.Identity. */
#ifndef CSI_IDENTITY_H
#define CSI_IDENTITY_H

#include "csi/controller.h"
#include "proto/csi.rpc.h"
#include "rpc/server/server.h"

struct identity {
    const char *driver_name; /* domain form, at most 63 characters */
    const char *node_id;
    struct controller *controller; /* NULL: only Identity is served */
};

/* Whether the CSI specification allows the name. */
MUST_CHECK struct error *identity_check_name(const char *driver_name);

/* The answer to GetPluginInfo; the texts are not copied. */
void identity_fill_info(const char *driver_name, const char *node_id, struct arena *arena,
                        Csi__V1__GetPluginInfoResponse *reply);

/* Their context is a struct identity. */
extern const struct csi_v1_identity identity_handlers;

#endif
