// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const mebibyte = 1 << 20

func capability(k kind) *csi.VolumeCapability {
	out := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{
		Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	switch k {
	case tree:
		out.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}
	case ext4:
		out.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}}
	case block:
		out.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return out
}

// ---- making ----

func (s *storm) create(v *volume, k kind, size int64) *operation {
	v.begin(s.newName("volume"), k, emptyContent)
	request := &csi.CreateVolumeRequest{Name: v.name, VolumeCapabilities: []*csi.VolumeCapability{capability(k)},
		CapacityRange: &csi.CapacityRange{RequiredBytes: size}}
	return &operation{what: "create", try: func(session *session) error {
		answer, err := callInHurry(session, session.controller.CreateVolume, request)
		if err != nil {
			return err
		}
		return v.take(answer.GetVolume(), size)
	}}
}

// begin starts a new life.
func (i *item) begin(name string, k kind, contents ...*content) {
	i.data.Lock()
	defer i.data.Unlock()
	i.name, i.kind, i.contents = name, k, contents
}

func (v *volume) take(answer *csi.Volume, size int64) error {
	if answer.GetVolumeId() == "" || answer.GetCapacityBytes() < size {
		return fmt.Errorf("answered with the volume %v, %d bytes were asked for", answer, size)
	}
	v.data.Lock()
	defer v.data.Unlock()
	v.id, v.size, v.state = answer.GetVolumeId(), answer.GetCapacityBytes(), created
	return nil
}

// origin is one life of an item that something is copied from.
type origin struct {
	*item
	id string
}

// look adds what a copy that is made now would hold, and tells whether the source exists for certain. The contents do not change before
// `release`.
func (o *origin) look(to *item) (exists bool, release func(), err error) {
	release = func() {}
	if !o.data.TryRLock() {
		return false, release, errBusy
	}
	if o.item.id != o.id {
		o.data.RUnlock()
		return false, release, nil
	}
	to.addContents(o.contents)
	return o.unanswered == nil || o.unanswered.what != "delete", o.data.RUnlock, nil
}

// addTo is for a time when no client works.
func (o *origin) addTo(to *item) {
	if o.item.id == o.id {
		to.addContents(o.contents)
	}
}

// copyVolume makes a volume of a volume or a snapshot. It is not given up: a copy that goes on while its source changes holds
// something that the model does not know.
func (s *storm) copyVolume(v *volume, from *origin, k kind, size int64) *operation {
	v.begin(s.newName("copy"), k)
	source, what := &csi.VolumeContentSource{}, "clone"
	if from.id[0] == 's' {
		what = "restore"
		source.Type = &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: from.id}}
	} else {
		source.Type = &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: from.id}}
	}
	request := &csi.CreateVolumeRequest{Name: v.name, VolumeContentSource: source,
		VolumeCapabilities: []*csi.VolumeCapability{capability(k)}, CapacityRange: &csi.CapacityRange{RequiredBytes: size}}
	return &operation{what: what, begunAgain: func() { from.addTo(&v.item) }, try: func(session *session) error {
		exists, release, err := from.look(&v.item)
		defer release()
		if err != nil {
			return err
		}
		answer, err := call(session, session.controller.CreateVolume, request)
		if status.Code(err) == codes.NotFound && !exists || s.cannotBeStill(k, err) {
			v.data.Lock()
			defer v.data.Unlock()
			v.vanish()
			return nil
		}
		if err != nil {
			return fmt.Errorf("from %s: %w", from.id, err)
		}
		return v.take(answer.GetVolume(), size)
	}}
}

// cannotBeStill: a back end that copies block by block refuses to copy a raw device that is in use.
func (s *storm) cannotBeStill(k kind, err error) bool {
	return s.options.backend == "dir" && k == block && status.Code(err) == codes.FailedPrecondition
}

// vanish ends a life; with the lock of the data held.
func (v *volume) vanish() {
	v.id, v.size, v.growsTo, v.contents, v.state, v.readOnly = "", 0, 0, nil, absent, false
}

func (s *storm) takeSnapshot(to *snapshot, from *origin, k kind) *operation {
	to.begin(s.newName("snapshot"), k)
	to.source = from.id
	request := &csi.CreateSnapshotRequest{Name: to.name, SourceVolumeId: from.id}
	return &operation{what: "snapshot", begunAgain: func() { from.addTo(&to.item) }, try: func(session *session) error {
		exists, release, err := from.look(&to.item)
		defer release()
		if err != nil {
			return err
		}
		answer, err := call(session, session.controller.CreateSnapshot, request)
		for err == nil && !answer.GetSnapshot().GetReadyToUse() {
			time.Sleep(10 * time.Millisecond)
			answer, err = call(session, session.controller.CreateSnapshot, request)
		}
		if status.Code(err) == codes.NotFound && !exists || s.cannotBeStill(k, err) {
			to.data.Lock()
			defer to.data.Unlock()
			to.vanish()
			return nil
		}
		if err != nil {
			return fmt.Errorf("of %s: %w", from.id, err)
		}
		made := answer.GetSnapshot()
		if made.GetSnapshotId() == "" || made.GetSourceVolumeId() != from.id {
			return fmt.Errorf("answered with the snapshot %v", made)
		}
		to.data.Lock()
		defer to.data.Unlock()
		to.id, to.size = made.GetSnapshotId(), made.GetSizeBytes()
		return nil
	}}
}

func (s *snapshot) vanish() { s.id, s.size, s.contents, s.source = "", 0, nil, "" }

// ---- changing ----

func (s *storm) expand(v *volume, size int64) *operation {
	v.growsTo = size
	capacity := &csi.CapacityRange{RequiredBytes: size}
	return &operation{what: "expand", try: func(session *session) error {
		answer, err := callInHurry(session, session.controller.ControllerExpandVolume,
			&csi.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: capacity})
		if err != nil {
			return err
		}
		if answer.GetCapacityBytes() < size {
			return fmt.Errorf("answered with %d bytes, %d were asked for", answer.GetCapacityBytes(), size)
		}
		if v.state >= staged && answer.GetNodeExpansionRequired() {
			err = s.expandOnNode(session, v, capacity)
		}
		if err == nil {
			v.data.Lock()
			v.size, v.growsTo = answer.GetCapacityBytes(), 0
			v.data.Unlock()
		}
		return err
	}}
}

func (s *storm) expandOnNode(session *session, v *volume, capacity *csi.CapacityRange) error {
	path := s.stagingPath(v)
	if v.state == published && !v.readOnly {
		path = s.targetPath(v)
	}
	_, err := callInHurry(session, session.node.NodeExpandVolume,
		&csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: path, CapacityRange: capacity})
	if v.kind == ext4 && !s.mayGrowMounted && status.Code(err) == codes.PermissionDenied {
		return nil // it grows when it is staged the next time
	}
	return err
}

// ---- mounting ----

func (s *storm) stage(v *volume) *operation {
	return &operation{what: "stage", try: func(session *session) error {
		if err := os.MkdirAll(s.stagingPath(v), 0o700); err != nil {
			return err
		}
		_, err := callInHurry(session, session.node.NodeStageVolume, &csi.NodeStageVolumeRequest{VolumeId: v.id,
			StagingTargetPath: s.stagingPath(v), VolumeCapability: capability(v.kind)})
		if err == nil {
			v.state = staged
		}
		return err
	}}
}

func (s *storm) publish(v *volume, readOnly bool) *operation {
	v.readOnly = readOnly
	return &operation{what: "publish", try: func(session *session) error {
		_, err := callInHurry(session, session.node.NodePublishVolume, &csi.NodePublishVolumeRequest{VolumeId: v.id,
			StagingTargetPath: s.stagingPath(v), TargetPath: s.targetPath(v), Readonly: readOnly,
			VolumeCapability: capability(v.kind)})
		if err == nil {
			v.state = published
		}
		return err
	}}
}

func (s *storm) unpublish(v *volume) *operation {
	return &operation{what: "unpublish", try: func(session *session) error {
		_, err := callInHurry(session, session.node.NodeUnpublishVolume,
			&csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: s.targetPath(v)})
		if err != nil {
			return err
		}
		if _, err := os.Lstat(s.targetPath(v)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("answered, but the target path is still there (%v)", err)
		}
		v.state, v.readOnly = staged, false
		return nil
	}}
}

func (s *storm) unstage(v *volume) *operation {
	return &operation{what: "unstage", try: func(session *session) error {
		_, err := callInHurry(session, session.node.NodeUnstageVolume,
			&csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: s.stagingPath(v)})
		if err != nil {
			return err
		}
		v.state = created
		return os.Remove(s.stagingPath(v)) // fails if something is mounted there still
	}}
}

// ---- deleting ----

// deleteCopied is for a volume that may be copied from at the moment: that is refused.
func (s *storm) deleteCopied(v *volume) *operation {
	op := s.deleteVolume(v)
	whole := op.try
	op.try = func(session *session) error {
		err := whole(session)
		if status.Code(err) == codes.FailedPrecondition {
			return errBusy
		}
		return err
	}
	return op
}

func (s *storm) deleteVolume(v *volume) *operation {
	return &operation{what: "delete", try: func(session *session) error {
		v.data.Lock()
		defer v.data.Unlock()
		_, err := callInHurry(session, session.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: v.id})
		if err != nil {
			return err
		}
		s.rememberDeleted(v.id)
		v.vanish()
		return nil
	}}
}

func (s *storm) deleteSnapshot(i *snapshot) *operation {
	return &operation{what: "delete", try: func(session *session) error {
		i.data.Lock()
		defer i.data.Unlock()
		_, err := callInHurry(session, session.controller.DeleteSnapshot, &csi.DeleteSnapshotRequest{SnapshotId: i.id})
		if err != nil {
			return err
		}
		s.rememberDeleted(i.id)
		i.vanish()
		return nil
	}}
}
