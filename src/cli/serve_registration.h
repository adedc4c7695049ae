/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registration with the kubelet, and again. The kubelet takes a driver in when a socket appears in its directory: it asks NodeGetInfo then, once, and writes the answer into
 * the node's objects. With connections the answer can become another one: then the socket is removed and made again, which the kubelet takes for a new driver. So it is
 * when the kubelet has refused the driver, since it does not try again by itself. There is no socket before there is an answer.
 */
#ifndef CLI_SERVE_REGISTRATION_H
#define CLI_SERVE_REGISTRATION_H

#include "connections/front.h"

struct serve_registration;

/* All of it must outlive the registration. */
struct serve_registration_options {
    const char *directory; /* the kubelet's plugins_registry */
    const char *driver_name;
    const char *endpoint; /* where CSI is served, on a unix socket */
    struct front *front;  /* NULL: the answer never changes */
    struct runtime *runtime;
    const struct log *log;
};

/* Has made the socket when it returns, if there is an answer. */
MUST_CHECK struct error *serve_registration_open(const struct serve_registration_options *options,
                                                 struct serve_registration **out);
/* Removes the socket: the kubelet forgets the driver. Nobody is told of changes of facts any more. NULL is fine. */
void serve_registration_close(struct serve_registration *registration);

#endif
