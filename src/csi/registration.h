/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pluginregistration.Registration: registers the driver with the kubelet, so that no
 * node-driver-registrar is needed. Served on a separate socket in the kubelet's plugins_registry
 * directory.
 */
#ifndef CSI_REGISTRATION_H
#define CSI_REGISTRATION_H

#include "base/log.h"
#include "rpc/server/server.h"

enum registration_event {
    REGISTRATION_ASKED,    /* the kubelet has found the socket; NodeGetInfo follows */
    REGISTRATION_ACCEPTED, /* the driver is registered */
    REGISTRATION_REFUSED,  /* the kubelet retries only when the socket is created again */
};

struct registration {
    const char *driver_name;
    const char *socket_path; /* where CSI is served */
    const struct log *log;
    /* Called on the loop thread; must not block. */
    void (*note)(void *context, enum registration_event event);
    void *context;
};

/* `registration` must outlive the server. */
void registration_add(struct server *server, struct registration *registration);

#endif
