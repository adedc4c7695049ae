/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts and plugins of Velero agree on: names on the wire and in the environment. */
#ifndef VELERO_VELERO_H
#define VELERO_VELERO_H

/* The host sets this variable to this value, so that a plugin knows that a host has started it. */
#define VELERO_COOKIE_NAME "VELERO_PLUGIN"
#define VELERO_COOKIE_VALUE "hello"

/* The handshake line, CORE|APP|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE. */
#define VELERO_CORE_VERSION 1
#define VELERO_PROTOCOL_VERSION 2

/* Set by the host, all of them optional. */
#define VELERO_PROTOCOL_VERSIONS "PLUGIN_PROTOCOL_VERSIONS" /* separated by commas */
#define VELERO_CLIENT_CERTIFICATE "PLUGIN_CLIENT_CERT"      /* PEM; asks for mutual TLS */
#define VELERO_MULTIPLEX "PLUGIN_MULTIPLEX_GRPC"
#define VELERO_SOCKET_DIRECTORY "PLUGIN_UNIX_SOCKET_DIR"

/*
 * Set by a host that knows kinds of plugins that no release of Velero has, separated by commas:
 * "VolumeSnapshotterV2". A plugin lists such a kind only to a host that names it here, because
 * Velero does not start if a plugin lists a kind that it does not know.
 */
#define VELERO_EXTRA_KINDS "SKYCAP_VELERO_KINDS"

#define VELERO_KIND_SNAPSHOTTER "VolumeSnapshotter"
#define VELERO_KIND_SNAPSHOTTER_V2 "VolumeSnapshotterV2"
#define VELERO_KIND_BACKUP_ACTION_V2 "BackupItemActionV2"
#define VELERO_KIND_RESTORE_ACTION_V2 "RestoreItemActionV2"
#define VELERO_KIND_DELETE_ACTION "DeleteItemAction"

/* Tags that Velero adds to every snapshot, beside the labels of the backup. */
#define VELERO_TAG_BACKUP "velero.io/backup"
#define VELERO_TAG_VOLUME "velero.io/pv"

#endif
