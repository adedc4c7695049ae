/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to skycap.v1.Inventory, and printing of volumes and snapshots. Everything lives in the
 * client's arena.
 */
#ifndef CLI_INVENTORY_H
#define CLI_INVENTORY_H

#include "cli/client.h"
#include "proto/inventory.pb-c.h"

typedef Skycap__V1__VolumeInfo volume_info;
typedef Skycap__V1__SnapshotInfo snapshot_info;

/* By id or name. */
MUST_CHECK struct error *inventory_find_volume(struct client *client, const char *text,
                                               volume_info **out);
MUST_CHECK struct error *inventory_find_snapshot(struct client *client, const char *text,
                                                 snapshot_info **out);

/* Prints the current state: a row of the table, or the message with -o json. */
MUST_CHECK struct error *inventory_show_volume(struct client *client, const char *id);
MUST_CHECK struct error *inventory_show_snapshot(struct client *client, const char *id);

void inventory_print_volumes(volume_info *const *volumes, size_t count, struct arena *arena);
void inventory_print_snapshots(snapshot_info *const *snapshots, size_t count, struct arena *arena);

/* "10 GiB" or "unlimited"; "2026-11-15 19:40:00" in local time. */
const char *inventory_size_text(int64_t bytes, struct arena *arena);
/* The same for an amount, which may be 0. */
const char *inventory_bytes_text(uint64_t bytes, struct arena *arena);
const char *inventory_time_text(const Google__Protobuf__Timestamp *time, struct arena *arena);

#endif
