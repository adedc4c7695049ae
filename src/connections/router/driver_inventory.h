/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes and snapshots of third-party drivers as skycap.v1.Inventory tells them: as much as CSI
 * tells, which knows no names. On workers; all is in the call's arena, and has our ids.
 */
#ifndef CONNECTIONS_ROUTER_DRIVER_INVENTORY_H
#define CONNECTIONS_ROUTER_DRIVER_INVENTORY_H

#include "connections/router/merged_list.h"
#include "proto/inventory.pb-c.h"

typedef Skycap__V1__VolumeInfo volume_info;
typedef Skycap__V1__SnapshotInfo snapshot_info;

/* Can its driver list them, as far as is known? */
bool driver_inventory_has_volumes(const struct connection *connection);
bool driver_inventory_has_snapshots(const struct connection *connection);

/* As struct merged_list wants it. */
MUST_CHECK struct error *driver_inventory_list_volumes(const struct merged_list *list,
                                                       struct connection *connection,
                                                       const char *token, size_t most,
                                                       struct list_page *out);
/* `of_volume` is an id of ours; "": of any. */
MUST_CHECK struct error *driver_inventory_list_snapshots(const struct merged_list *list,
                                                         struct connection *connection,
                                                         const char *of_volume, const char *token,
                                                         size_t most, struct list_page *out);

/*
 * One, by an id of ours; `*out` is a volume_info or a snapshot_info. NOT_FOUND. Of a driver that
 * can neither tell of one nor list them whatever is asked for is believed to be there: it must be
 * possible to work with what it has made.
 */
MUST_CHECK struct error *driver_inventory_get_volume(struct call *call,
                                                     const struct connection_set *set,
                                                     struct connection *connection, const char *id,
                                                     void **out);
/* By its name. NOT_FOUND also of a driver whose ids do not follow from names: it tells none. */
MUST_CHECK struct error *driver_inventory_find_volume(struct call *call,
                                                      const struct connection_set *set,
                                                      struct connection *connection,
                                                      const char *name, void **out);
MUST_CHECK struct error *driver_inventory_get_snapshot(struct call *call,
                                                       const struct connection_set *set,
                                                       struct connection *connection,
                                                       const char *id, void **out);

#endif
