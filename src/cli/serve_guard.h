/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may call what of a process that is a registry or an OIM controller: see docs/oim.md. A
 * process with CSI only takes every peer that its CA has signed.
 */
#ifndef CLI_SERVE_GUARD_H
#define CLI_SERVE_GUARD_H

#include "registry/registry.h"

struct serve_guard {
    struct registry *registry;  /* NULL: none here */
    const char *own_controller; /* the OIM controller's id; NULL: none here */
    bool is_open;               /* --insecure: no names, no rights */
};

/* The guard must outlive the server. */
void serve_guard_add(struct serve_guard *guard, struct server *server);

#endif
