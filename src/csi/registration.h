/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pluginregistration.Registration: how the kubelet takes the driver in, so that no node-driver-registrar is needed. Served on a socket of
 * its own in the kubelet's plugins_registry directory.
 */
#ifndef CSI_REGISTRATION_H
#define CSI_REGISTRATION_H

#include "base/log.h"
#include "rpc/server.h"

struct registration {
    const char *driver_name;
    const char *socket_path; /* where CSI is served */
    const struct log *log;
};

/* `registration` must outlive the server. */
void registration_add(struct server *server, struct registration *registration);

#endif
