/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers the driver with the kubelet, and again when needed. The kubelet registers a driver when
 * a socket appears in its directory. It then calls NodeGetInfo, once, and writes the answer to the
 * CSINode object. With connections the answer can change; the socket is then removed and created
 * again, and the kubelet registers the driver anew. The same is done when the kubelet has rejected
 * the driver, because it does not retry. No socket is created before NodeGetInfo can be answered.
 */
#ifndef CLI_SERVE_REGISTRATION_H
#define CLI_SERVE_REGISTRATION_H

#include "connections/router/router.h"

struct serve_registration;

/* All of it must outlive the registration. */
struct serve_registration_options {
    const char *directory; /* the kubelet's plugins_registry */
    const char *driver_name;
    const char *endpoint;  /* where CSI is served, on a unix socket */
    struct router *router; /* NULL: the answer never changes */
    struct runtime *runtime;
    const struct log *log;
};

/* The socket exists when it returns, if NodeGetInfo can be answered. */
MUST_CHECK struct error *serve_registration_open(const struct serve_registration_options *options,
                                                 struct serve_registration **out);
/*
 * Removes the socket: the kubelet deregisters the driver. Stops the router's fact_changes. NULL is
 * fine.
 */
void serve_registration_close(struct serve_registration *registration);

#endif
