// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// Secrets, and what is left at the very end.
var (
	secretFacts = []fact{{"secrets and mount flags are not in the log", secretsStaySecret}}
	lastFacts   = []fact{{"nothing is left of all this", nothingIsLeft}}
)

const secret = "hunter2-correct-horse"

func secretsStaySecret(t *trial) {
	for _, k := range []kind{tree, btrfs} {
		p := t.stage(t.create(t.request(k)), withMode(k.capability(), manyWriters))
		for what, err := range t.callsWithSecrets(p) {
			t.ok(what, err)
		}
		p.capability, p.staging = withFlags(k, "password="+secret), t.directory("other")
		err := t.tryStage(p)
		t.code("a strange mount flag", err, codes.InvalidArgument)
		t.that(!strings.Contains(err.Error(), secret), "an error does not tell it")
	}
	log, err := os.ReadFile(t.log)
	t.ok("read the log", err)
	t.that(strings.Contains(string(log), "NodeStageVolume"), "calls are logged")
	t.that(!strings.Contains(string(log), secret), "the secret is not in the log")
}

// callsWithSecrets makes every call that takes some.
func (t *trial) callsWithSecrets(p place) map[string]error {
	calls := map[string]error{}
	add := func(name string) func(any, error) { return func(_ any, err error) { calls[name] = err } }
	secrets := map[string]string{"password": secret}
	capability := p.capability
	add("ValidateVolumeCapabilities")(t.ValidateVolumeCapabilities(t.ctx, &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: p.id, Secrets: secrets, VolumeCapabilities: []*csi.VolumeCapability{capability}}))
	add("ControllerPublishVolume")(t.ControllerPublishVolume(t.ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: p.id, NodeId: t.nodeID(), VolumeCapability: capability, Secrets: secrets}))
	add("NodeStageVolume")(t.NodeStageVolume(t.ctx, &csi.NodeStageVolumeRequest{
		VolumeId: p.id, StagingTargetPath: p.staging, VolumeCapability: capability, Secrets: secrets}))
	add("NodePublishVolume")(t.NodePublishVolume(t.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: p.id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: capability, Secrets: secrets}))
	add("ControllerExpandVolume")(t.ControllerExpandVolume(t.ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: p.id, CapacityRange: bytesRange(256*mib, 0), Secrets: secrets}))
	add("NodeExpandVolume")(t.NodeExpandVolume(t.ctx, &csi.NodeExpandVolumeRequest{VolumeId: p.id, VolumePath: p.target, Secrets: secrets}))
	add("ControllerModifyVolume")(t.ControllerModifyVolume(t.ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: p.id, MutableParameters: labelOne, Secrets: secrets}))
	snapshot, err := t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: t.unique("snapshot"), SourceVolumeId: p.id, Secrets: secrets})
	add("CreateSnapshot")(snapshot, err)
	add("ListSnapshots")(t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{Secrets: secrets}))
	add("DeleteSnapshot")(t.DeleteSnapshot(t.ctx, &csi.DeleteSnapshotRequest{
		SnapshotId: snapshot.GetSnapshot().GetSnapshotId(), Secrets: secrets}))
	t.ok("NodeUnpublishVolume", t.unpublish(p))
	t.ok("NodeUnstageVolume", t.unstage(p))
	add("ControllerUnpublishVolume")(t.ControllerUnpublishVolume(t.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: p.id, Secrets: secrets}))
	add("NodeGetStorageHealth")(t.NodeGetStorageHealth(t.ctx, &csi.NodeGetStorageHealthRequest{Secrets: secrets}))
	request := t.request(tree)
	request.Secrets = secrets
	volume, err := t.tryCreate(request)
	add("CreateVolume")(volume, err)
	add("DeleteVolume")(t.DeleteVolume(t.ctx, &csi.DeleteVolumeRequest{VolumeId: volume.GetVolumeId(), Secrets: secrets}))
	return calls
}

func nothingIsLeft(t *trial) {
	equal(t, "volumes", len(t.volumes()), 0)
	snapshots, err := t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{})
	t.ok("ListSnapshots", err)
	equal(t, "snapshots", len(snapshots.Entries), 0)
	equal(t, "mounts", strings.Join(t.mountsBelow(t.dir), " "), "")
}
