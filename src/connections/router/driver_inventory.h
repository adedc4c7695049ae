/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes and snapshots of third-party drivers for skycap.v1.Inventory, as far as CSI reports them;
 * CSI has no names. On workers. Everything is in the call's arena and has our ids.
 */
#ifndef CONNECTIONS_ROUTER_DRIVER_INVENTORY_H
#define CONNECTIONS_ROUTER_DRIVER_INVENTORY_H

#include "connections/router/merged_list.h"
#include "proto/inventory.pb-c.h"

typedef Skycap__V1__VolumeInfo volume_info;
typedef Skycap__V1__SnapshotInfo snapshot_info;

/* Does its driver list them, as far as is known? */
bool driver_inventory_has_volumes(const struct connection *connection);
bool driver_inventory_has_snapshots(const struct connection *connection);

/* For merged_list.ask. */
MUST_CHECK struct error *driver_inventory_list_volumes(const struct merged_list *list,
                                                       struct connection *connection,
                                                       const char *token, size_t most,
                                                       struct list_page *out);
/* `of_volume` is our id; "": any. */
MUST_CHECK struct error *driver_inventory_list_snapshots(const struct merged_list *list,
                                                         struct connection *connection,
                                                         const char *of_volume, const char *token,
                                                         size_t most, struct list_page *out);

/*
 * Finds one by our id; `*out` is a volume_info or a snapshot_info. NOT_FOUND. If the driver can
 * neither get nor list them, the object is assumed to exist: its users must be able to work with
 * it.
 */
MUST_CHECK struct error *driver_inventory_get_volume(struct call *call,
                                                     const struct connection_set *set,
                                                     struct connection *connection, const char *id,
                                                     void **out);
/* By name. NOT_FOUND also if the driver's ids do not follow from names. */
MUST_CHECK struct error *driver_inventory_find_volume(struct call *call,
                                                      const struct connection_set *set,
                                                      struct connection *connection,
                                                      const char *name, void **out);
MUST_CHECK struct error *driver_inventory_get_snapshot(struct call *call,
                                                       const struct connection_set *set,
                                                       struct connection *connection,
                                                       const char *id, void **out);

#endif
