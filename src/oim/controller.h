/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OIM controller: serves oim.v0.Controller with this host's accelerator, and keeps itself
 * registered.
 */
#ifndef OIM_CONTROLLER_H
#define OIM_CONTROLLER_H

#include "base/log.h"
#include "rpc/server/server.h"

struct oim_controller;

struct oim_controller_options {
    const char *id;               /* in the registry */
    const char *accelerator;      /* "kernel" or "spdk"; NULL: kernel */
    const char *spdk_socket;      /* NULL: /var/tmp/spdk.sock */
    const char *vhost_controller; /* its name in SPDK; NULL: vhost.0 */
    const char *vhost_device;     /* its PCI address on the host, may be partial; for spdk */
    const char *data_directory;   /* the kernel accelerator mounts a tmpfs in it */
    const char *registry;         /* its address; NULL: does not register */
    const char *address;          /* of this controller; needed with a registry */
    uint32_t registry_delay_ms;   /* between registrations; 0: one minute */
    struct tls_context *tls;      /* to the registry; NULL: plaintext */
    struct runtime *runtime;
    const struct log *log;
};

/* INVALID_ARGUMENT: an option is wrong. Does not connect to anything yet. */
MUST_CHECK struct error *oim_controller_open(const struct oim_controller_options *options,
                                             struct oim_controller **out);

/* Before the server begins. */
void oim_controller_add(struct oim_controller *controller, struct server *server);

/* Starts to register, once the server answers. */
void oim_controller_begin(struct oim_controller *controller);

/* Stops registering. The entry is not removed, so that a short restart goes unnoticed. */
void oim_controller_stop(struct oim_controller *controller);

/* After the server has been freed, before the runtime is closed. NULL is fine. */
void oim_controller_close(struct oim_controller *controller);

#endif
