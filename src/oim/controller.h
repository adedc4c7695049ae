/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OIM controller: oim.v0.Controller on this host's accelerator, and its entry in the registry,
 * kept fresh.
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
    const char *vhost_controller; /* SPDK's name of it; NULL: vhost.0 */
    const char
        *vhost_device; /* its PCI address as the host sees it, may be partial; needed for spdk */
    const char *data_directory; /* the kernel accelerator mounts its memory below it */
    const char *registry;       /* its address; NULL: registers nowhere */
    const char *address;        /* to be called at; needed with a registry */
    uint32_t registry_delay_ms; /* between registrations; 0: one minute */
    struct tls_context *tls;    /* to the registry; NULL: plaintext */
    struct runtime *runtime;
    const struct log *log;
};

/* INVALID_ARGUMENT: an option is wrong. Waits neither for the registry nor for the accelerator. */
MUST_CHECK struct error *oim_controller_open(const struct oim_controller_options *options,
                                             struct oim_controller **out);

/* Before the server begins. */
void oim_controller_add(struct oim_controller *controller, struct server *server);

/* The server answers now: registers, and again and again. */
void oim_controller_begin(struct oim_controller *controller);

/*
 * Registers no more; the entry is left to expire, so that a restart does not make it vanish for a
 * moment.
 */
void oim_controller_stop(struct oim_controller *controller);

/* After the server was freed, before the runtime is closed. NULL is fine. */
void oim_controller_close(struct oim_controller *controller);

#endif
