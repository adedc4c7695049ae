// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
)

// driver is the driver under test, and what is known of it.
type driver struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
	dir           string
	log           string
	enforcesTrees bool
	cutsDevices   bool
	compresses    bool
	ownsSpace     bool
}

func (d *driver) connect(address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"))
	if err != nil {
		return err
	}
	d.IdentityClient = csi.NewIdentityClient(conn)
	d.ControllerClient = csi.NewControllerClient(conn)
	d.NodeClient = csi.NewNodeClient(conn)
	return nil
}

// ---- capabilities ----

type mode = csi.VolumeCapability_AccessMode_Mode

const (
	singleWriterNode = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	manyWriters      = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
)

func withMode(capability *csi.VolumeCapability, m mode) *csi.VolumeCapability {
	capability.AccessMode = &csi.VolumeCapability_AccessMode{Mode: m}
	return capability
}

func mounted(fsType string, flags ...string) *csi.VolumeCapability {
	mount := &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}
	return withMode(&csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: mount}}, singleWriterNode)
}

func inGroup(capability *csi.VolumeCapability, group string) *csi.VolumeCapability {
	capability.GetMount().VolumeMountGroup = group
	return capability
}

func block() *csi.VolumeCapability {
	return withMode(&csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}, singleWriterNode)
}

// ---- kinds of volumes ----

// kind is a way in which a volume can be had, with a size that is enough for it.
type kind struct {
	name       string
	capability func() *csi.VolumeCapability
	size       int64
}

var (
	tree   = kind{"tree", func() *csi.VolumeCapability { return mounted("none") }, 32 * mib}
	ext4   = kind{"ext4", func() *csi.VolumeCapability { return mounted("ext4") }, 32 * mib}
	xfs    = kind{"xfs", func() *csi.VolumeCapability { return mounted("xfs") }, 320 * mib}
	btrfs  = kind{"btrfs", func() *csi.VolumeCapability { return mounted("btrfs") }, 128 * mib}
	device = kind{"block", block, 8 * mib}
)

var (
	allKinds   = []kind{tree, ext4, xfs, btrfs, device}
	imageKinds = []kind{ext4, xfs, btrfs, device}
)

func (k kind) isBlock() bool { return k.name == device.name }

// forKinds makes a case of each.
func forKinds(name string, kinds []kind, show func(*trial, kind)) []fact {
	facts := make([]fact, 0, len(kinds))
	for _, k := range kinds {
		facts = append(facts, fact{name + ": " + k.name, func(t *trial) { show(t, k) }})
	}
	return facts
}

// ---- making volumes ----

func bytesRange(required, limit int64) *csi.CapacityRange {
	return &csi.CapacityRange{RequiredBytes: required, LimitBytes: limit}
}

func (t *trial) request(k kind) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name:               t.unique("volume"),
		CapacityRange:      bytesRange(k.size, 0),
		VolumeCapabilities: []*csi.VolumeCapability{k.capability()},
	}
}

// tryCreate removes again what it may have made.
func (t *trial) tryCreate(request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	response, err := t.CreateVolume(t.ctx, request)
	if err == nil {
		t.later(func() error { return t.deleteVolume(response.Volume.VolumeId) })
	}
	return response.GetVolume(), err
}

func (t *trial) create(request *csi.CreateVolumeRequest) *csi.Volume {
	volume, err := t.tryCreate(request)
	t.ok("CreateVolume", err)
	return volume
}

func (t *trial) deleteVolume(id string) error {
	_, err := t.DeleteVolume(t.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

func (t *trial) trySnapshot(name, source string) (*csi.Snapshot, error) {
	response, err := t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source})
	if err == nil {
		t.later(func() error { return t.deleteSnapshot(response.Snapshot.SnapshotId) })
	}
	return response.GetSnapshot(), err
}

func (t *trial) snapshot(source string) *csi.Snapshot {
	snapshot, err := t.trySnapshot(t.unique("snapshot"), source)
	t.ok("CreateSnapshot", err)
	t.that(snapshot.ReadyToUse, "the snapshot is ready")
	return snapshot
}

func (t *trial) deleteSnapshot(id string) error {
	_, err := t.DeleteSnapshot(t.ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	return err
}

func fromVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
}

func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
}

// copyOf asks for a volume with the contents of another.
func (t *trial) copyOf(k kind, source *csi.VolumeContentSource) *csi.CreateVolumeRequest {
	request := t.request(k)
	request.VolumeContentSource = source
	return request
}

// ---- using them ----

// place is where a volume is staged and published.
type place struct {
	id         string
	capability *csi.VolumeCapability
	staging    string
	target     string
	readOnly   bool
}

func (t *trial) tryStage(p place) error {
	_, err := t.NodeStageVolume(t.ctx, &csi.NodeStageVolumeRequest{
		VolumeId: p.id, StagingTargetPath: p.staging, VolumeCapability: p.capability})
	return err
}

func (t *trial) unstage(p place) error {
	_, err := t.NodeUnstageVolume(t.ctx, &csi.NodeUnstageVolumeRequest{
		VolumeId: p.id, StagingTargetPath: p.staging})
	return err
}

func (t *trial) tryPublish(p place) error {
	_, err := t.NodePublishVolume(t.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: p.id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: p.capability,
		Readonly: p.readOnly})
	return err
}

func (t *trial) unpublish(p place) error {
	_, err := t.NodeUnpublishVolume(t.ctx, &csi.NodeUnpublishVolumeRequest{
		VolumeId: p.id, TargetPath: p.target})
	return err
}

// stage stages the volume at a path of its own, as the orchestrator does: the directory is there already.
func (t *trial) stage(volume *csi.Volume, capability *csi.VolumeCapability) place {
	p := place{id: volume.VolumeId, capability: capability, staging: t.directory("staging"), target: t.path("target")}
	t.later(func() error { return t.unstage(p) })
	t.ok("NodeStageVolume", t.tryStage(p))
	return p
}

func (t *trial) publish(p place) place {
	t.later(func() error { return t.unpublish(p) })
	t.ok("NodePublishVolume", t.tryPublish(p))
	return p
}

// use stages and publishes a volume.
func (t *trial) use(volume *csi.Volume, capability *csi.VolumeCapability) place {
	return t.publish(t.stage(volume, capability))
}

// used makes a volume and publishes it.
func (t *trial) used(k kind) place {
	return t.use(t.create(t.request(k)), k.capability())
}

// release undoes publish and stage, in the middle of a case.
func (t *trial) release(p place) {
	t.ok("NodeUnpublishVolume", t.unpublish(p))
	_, err := os.Lstat(p.target)
	t.that(os.IsNotExist(err), "NodeUnpublishVolume has removed the target path")
	t.ok("NodeUnstageVolume", t.unstage(p))
}
