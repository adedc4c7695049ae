/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pluginregistration.Registration: how the kubelet takes the driver in, so that no
 * node-driver-registrar is needed. Served on a socket of its own in the kubelet's plugins_registry
 * directory.
 */
#ifndef CSI_REGISTRATION_H
#define CSI_REGISTRATION_H

#include "base/log.h"
#include "rpc/server/server.h"

enum registration_event {
    /* it has found the socket; what it wants to know of the node it asks next */
    REGISTRATION_ASKED,
    REGISTRATION_ACCEPTED, /* the driver is registered */
    /* it is not, and the kubelet does not try again before the socket is made anew */
    REGISTRATION_REFUSED,
};

struct registration {
    const char *driver_name;
    const char *socket_path; /* where CSI is served */
    const struct log *log;
    /* Loop thread: what the kubelet does. Never waits. */
    void (*note)(void *context, enum registration_event event);
    void *context;
};

/* `registration` must outlive the server. */
void registration_add(struct server *server, struct registration *registration);

#endif
