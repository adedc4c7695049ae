// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// What is told depends on the version that the orchestrator speaks.
var (
	versionFacts    = []fact{{"capabilities of CSI 1.13 are not told unasked", func(t *trial) { tells(t, false) }}}
	newVersionFacts = []fact{{"capabilities of CSI 1.13 are told where asked for", func(t *trial) { tells(t, true) }}}
)

func tells(t *trial, wanted bool) {
	plugin, err := t.GetPluginCapabilities(t.ctx, &csi.GetPluginCapabilitiesRequest{})
	t.ok("GetPluginCapabilities", err)
	equal(t, "SNAPSHOT_ACCESSIBILITY_CONSTRAINTS", slices.ContainsFunc(plugin.Capabilities, func(c *csi.PluginCapability) bool {
		return c.GetService().GetType() == csi.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS
	}), wanted)
	controller, err := t.ControllerGetCapabilities(t.ctx, &csi.ControllerGetCapabilitiesRequest{})
	t.ok("ControllerGetCapabilities", err)
	for _, capability := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH, csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH} {
		equal(t, capability.String(), slices.ContainsFunc(controller.Capabilities, func(c *csi.ControllerServiceCapability) bool {
			return c.GetRpc().GetType() == capability
		}), wanted)
	}
	node, err := t.NodeGetCapabilities(t.ctx, &csi.NodeGetCapabilitiesRequest{})
	t.ok("NodeGetCapabilities", err)
	for _, capability := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH, csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH} {
		equal(t, capability.String(), slices.ContainsFunc(node.Capabilities, func(c *csi.NodeServiceCapability) bool {
			return c.GetRpc().GetType() == capability
		}), wanted)
	}
	if wanted {
		snapshotTopology(t)
	}
}

// snapshotTopology: snapshots are where this node is, and tell so.
func snapshotTopology(t *trial) {
	snapshot := t.snapshot(t.create(t.request(tree)).VolumeId)
	equal(t, "topologies of a snapshot", len(snapshot.AccessibleTopology), 1)
	equal(t, "the topology of a snapshot", snapshot.AccessibleTopology[0].String(), t.here().String())
}
