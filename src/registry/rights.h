/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions, by the names in a peer's verified certificate (its common name and subject
 * alternative names):
 *
 *     component.registry   is the registry: the only peer that may call a controller
 *     user.admin           sets and reads every entry
 *     user.NAME            reads, if --registry-readers allows it
 *     controller.ID        sets and renews ID/address
 *     host.ID              may call controller ID
 *     node.ID              sets and renews nodes/ID/address, reads entries below nodes, and uses
 *                          the rows of the cluster
 *
 * A peer on a unix socket may do everything, because the socket has permissions of its own. With
 * --insecure, every peer may. Other peers without a name get UNAUTHENTICATED; peers that are not
 * allowed get PERMISSION_DENIED, and the error says which name is.
 *
 * Any thread; nothing blocks.
 */
#ifndef REGISTRY_RIGHTS_H
#define REGISTRY_RIGHTS_H

#include "base/error.h"
#include "registry/client/registry_name.h"
#include "rpc/http2/peer.h"

/* Set, remove or renew the entry at the normalized path. */
MUST_CHECK struct error *rights_check_set(const struct peer *peer, const char *path);

/*
 * Read the entries at and below the normalized path. `readers` ends with NULL; a name that ends in
 * '*' matches any suffix ("host.*", "*"). user.admin and component.registry are always allowed, and
 * nodes below PATH_NODES.
 */
MUST_CHECK struct error *rights_check_read(const struct peer *peer, const char *const *readers,
                                           const char *path);

/* Read and write the rows of the cluster. */
MUST_CHECK struct error *rights_check_rows(const struct peer *peer);

/* Have calls forwarded to the controller. */
MUST_CHECK struct error *rights_check_forward(const struct peer *peer, const char *controller_id);

#define RIGHTS_ADMIN "user.admin"

/* Be a node of the cluster. */
MUST_CHECK struct error *rights_check_node(const struct peer *peer);

/* Have this name, for servers that accept only one peer. */
MUST_CHECK struct error *rights_check_is(const struct peer *peer, const char *name);

#endif
