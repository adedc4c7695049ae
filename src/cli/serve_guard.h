/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions of callers by the names in their certificates: docs/oim.md and docs/cluster.md. A
 * certificate of the authority alone permits only health and reflection.
 */
#ifndef CLI_SERVE_GUARD_H
#define CLI_SERVE_GUARD_H

#include "registry/registry.h"

struct serve_guard {
    struct registry *registry;  /* NULL: none */
    const char *own_controller; /* the OIM controller's id; NULL: none */
    bool is_in_cluster;
    bool is_open; /* --insecure: no permissions */
};

/* The guard must outlive the server. */
void serve_guard_add(struct serve_guard *guard, struct server *server);

#endif
