/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what, by the names in a peer's verified certificate (common name or subject
 * alternative name, any of them):
 *
 *     component.registry   is the registry: the only one whose calls a controller takes
 *     user.admin           sets and reads every entry
 *     user.NAME            reads, where --registry-readers lets it
 *     controller.ID        sets ID/address, and renews it
 *     host.ID              is passed on to controller ID
 *
 * A peer on a unix socket has been let in by the socket's permissions: it may do everything. So may
 * everybody with --insecure. Others without a name are UNAUTHENTICATED; whoever is not allowed is
 * PERMISSION_DENIED and is told which name would be.
 *
 * Any thread; nothing blocks.
 */
#ifndef REGISTRY_RIGHTS_H
#define REGISTRY_RIGHTS_H

#include "base/error.h"
#include "rpc/http2/peer.h"

#define RIGHTS_REGISTRY "component.registry"

/* Set, remove or renew the entry at the (normal) path. */
MUST_CHECK struct error *rights_check_set(const struct peer *peer, const char *path);

/*
 * Read entries. `readers`: names, NULL at the end; one that ends in '*' stands for all names that
 * begin so ("host.*", "*"). user.admin and component.registry may always.
 */
MUST_CHECK struct error *rights_check_read(const struct peer *peer, const char *const *readers);

/* Have calls passed on to the controller. */
MUST_CHECK struct error *rights_check_pass(const struct peer *peer, const char *controller_id);

/* Be exactly this, for servers that take calls of one peer only. */
MUST_CHECK struct error *rights_check_is(const struct peer *peer, const char *name);

#endif
