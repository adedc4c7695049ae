// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The same request again gives the same; another under the same name does not.
var repeatFacts = []fact{
	{"the same volume again", sameVolumeAgain},
	{"another size under the same name", otherSize},
	{"other parameters under the same name", otherParameters},
	{"another source under the same name", otherSource},
	{"other capabilities under the same name", otherCapabilities},
	{"a clone retried is the same volume", cloneRetried},
	{"a clone is retried though its source is gone", cloneRetriedWithoutSource},
	{"a volume that was changed is created again", changedVolumeAgain},
	{"the same snapshot again, and another under its name", snapshotAgain},
	{"volumes created at once under one name are one", volumesAtOnce},
	{"snapshots created at once under one name are one", snapshotsAtOnce},
	{"deletes at once all succeed", deletesAtOnce},
	{"a volume in use is not deleted", deleteInUse},
	{"ControllerPublishVolume again, and in another way", attachAgain},
}

func (t *trial) existsOtherwise(what string, request *csi.CreateVolumeRequest) {
	_, err := t.tryCreate(request)
	t.code(what, err, codes.AlreadyExists)
}

func sameVolumeAgain(t *trial) {
	for _, k := range []kind{tree, ext4, device} {
		request := t.request(k)
		request.Parameters = map[string]string{"label": "one"}
		request.MutableParameters = map[string]string{"label": "two"}
		first := t.create(request)
		for range 3 {
			again := t.create(request)
			equal(t, "the id", again.VolumeId, first.VolumeId)
			equal(t, "the size", again.CapacityBytes, first.CapacityBytes)
		}
	}
}

func otherSize(t *trial) {
	request := t.request(tree)
	request.CapacityRange = bytesRange(32*mib, 64*mib)
	first := t.create(request)
	request.CapacityRange = bytesRange(33*mib, 0)
	t.existsOtherwise("a larger one", request)
	request.CapacityRange = bytesRange(31*mib, 0)
	t.existsOtherwise("a smaller one", request)
	request.CapacityRange = bytesRange(0, 31*mib)
	t.existsOtherwise("a lower limit", request)
	request.CapacityRange = bytesRange(32*mib, 48*mib)
	equal(t, "the id for another limit that fits", t.create(request).VolumeId, first.VolumeId)
}

func otherParameters(t *trial) {
	request := t.request(tree)
	request.Parameters = map[string]string{"label": "one"}
	request.MutableParameters = map[string]string{"label": "one"}
	t.create(request)
	for _, other := range []map[string]string{nil, {"label": "two"}, {"label": "one", "nocow": "true"}} {
		request.Parameters = other
		t.existsOtherwise("other parameters", request)
	}
	request.Parameters = map[string]string{"label": "one"}
	for _, other := range []map[string]string{nil, {"label": "two"}} {
		request.MutableParameters = other
		t.existsOtherwise("other mutable parameters", request)
	}
}

func otherSource(t *trial) {
	one, two := t.create(t.request(tree)).VolumeId, t.create(t.request(tree)).VolumeId
	sources := []*csi.VolumeContentSource{nil, fromVolume(one), fromVolume(two),
		fromSnapshot(t.snapshot(one).SnapshotId), fromSnapshot(t.snapshot(one).SnapshotId)}
	for i, source := range sources {
		request := t.copyOf(tree, source)
		t.create(request)
		for j, other := range sources {
			if i != j {
				request.VolumeContentSource = other
				t.existsOtherwise("another source", request)
			}
		}
	}
}

func otherCapabilities(t *trial) {
	kinds := []kind{tree, {"ext4", ext4.capability, 320 * mib}, xfs, {"block", block, 320 * mib}}
	for i := range kinds {
		kinds[i].size = 320 * mib
	}
	for _, k := range kinds {
		request := t.request(k)
		first := t.create(request)
		for _, other := range kinds {
			request.VolumeCapabilities = []*csi.VolumeCapability{other.capability()}
			if other.name != k.name {
				t.existsOtherwise(k.name+" as "+other.name, request)
			}
		}
		request.VolumeCapabilities = []*csi.VolumeCapability{withMode(k.capability(), manyWriters)}
		equal(t, "the id for another access mode", t.create(request).VolumeId, first.VolumeId)
	}
}

func cloneRetried(t *trial) {
	for _, k := range []kind{tree, device} {
		source := t.create(t.request(k)).VolumeId
		for _, from := range []*csi.VolumeContentSource{fromVolume(source), fromSnapshot(t.snapshot(source).SnapshotId)} {
			request := t.copyOf(k, from)
			first := t.create(request)
			again := t.create(request)
			equal(t, "the clone again", again.VolumeId, first.VolumeId)
			equal(t, "its source, as told", again.ContentSource.String(), from.String())
		}
	}
}

func cloneRetriedWithoutSource(t *trial) {
	source := t.create(t.request(tree)).VolumeId
	request := t.copyOf(tree, fromVolume(source))
	first := t.create(request)
	t.ok("DeleteVolume of the source", t.deleteVolume(source))
	equal(t, "the clone again", t.create(request).VolumeId, first.VolumeId)
}

func changedVolumeAgain(t *trial) {
	request := t.request(tree)
	request.MutableParameters = map[string]string{"label": "one"}
	first := t.create(request)
	t.grow(first.VolumeId, 2*tree.size)
	_, err := t.ControllerModifyVolume(t.ctx, &csi.ControllerModifyVolumeRequest{VolumeId: first.VolumeId,
		MutableParameters: map[string]string{"label": "two"}})
	t.ok("ControllerModifyVolume", err)
	again := t.create(request)
	equal(t, "the id", again.VolumeId, first.VolumeId)
	equal(t, "the size", again.CapacityBytes, 2*tree.size)
}

func snapshotAgain(t *trial) {
	one, two := t.create(t.request(tree)).VolumeId, t.create(t.request(tree)).VolumeId
	name := t.unique("snapshot")
	first, err := t.trySnapshot(name, one)
	t.ok("CreateSnapshot", err)
	again, err := t.trySnapshot(name, one)
	t.ok("CreateSnapshot again", err)
	equal(t, "the snapshot again", again.String(), first.String())
	_, err = t.trySnapshot(name, two)
	t.code("another source", err, codes.AlreadyExists)
	_, err = t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: one,
		Parameters: map[string]string{"csi.storage.k8s.io/volumesnapshot/name": "other"}})
	t.ok("what a sidecar adds", err)
	_, err = t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: one,
		Parameters: map[string]string{"consistency": "files"}})
	t.code("other parameters", err, codes.AlreadyExists)
	t.ok("DeleteVolume of the source", t.deleteVolume(one))
	again, err = t.trySnapshot(name, one)
	t.ok("CreateSnapshot again, without its source", err)
	equal(t, "the snapshot again", again.SnapshotId, first.SnapshotId)
}

// ---- at once ----

// atOnce runs the call so many times at the same time; those that find it under way get ABORTED.
func (t *trial) atOnce(count int, call func() (string, error)) map[string]int {
	var wait sync.WaitGroup
	ids, errs := make([]string, count), make([]error, count)
	for i := range count {
		wait.Go(func() { ids[i], errs[i] = call() })
	}
	wait.Wait()
	found := map[string]int{}
	for i, err := range errs {
		t.code("one of many", err, codes.OK, codes.Aborted)
		if status.Code(err) == codes.OK {
			found[ids[i]]++
		}
	}
	return found
}

func volumesAtOnce(t *trial) {
	before := len(t.volumes())
	for _, k := range []kind{tree, ext4} {
		for range 5 {
			request := t.request(k)
			ids := t.atOnce(16, func() (string, error) {
				response, err := t.CreateVolume(t.ctx, request)
				return response.GetVolume().GetVolumeId(), err
			})
			equal(t, "different volumes", len(ids), 1)
			volume := t.create(request)
			t.that(ids[volume.VolumeId] > 0, "asked again, it is the same volume")
		}
	}
	equal(t, "more volumes", len(t.volumes())-before, 10)
}

func snapshotsAtOnce(t *trial) {
	source := t.create(t.request(tree)).VolumeId
	for range 5 {
		name := t.unique("snapshot")
		ids := t.atOnce(16, func() (string, error) {
			response, err := t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source})
			return response.GetSnapshot().GetSnapshotId(), err
		})
		equal(t, "different snapshots", len(ids), 1)
		snapshot, err := t.trySnapshot(name, source)
		t.ok("CreateSnapshot again", err)
		t.that(ids[snapshot.SnapshotId] > 0, "asked again, it is the same snapshot")
	}
	response, err := t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{SourceVolumeId: source})
	t.ok("ListSnapshots", err)
	equal(t, "snapshots", len(response.Entries), 5)
}

func deletesAtOnce(t *trial) {
	for range 5 {
		volume := t.create(t.request(tree)).VolumeId
		t.atOnce(8, func() (string, error) { return "", t.deleteVolume(volume) })
		t.ok("DeleteVolume once more", t.deleteVolume(volume))
		_, err := t.ControllerGetVolume(t.ctx, &csi.ControllerGetVolumeRequest{VolumeId: volume})
		t.code("ControllerGetVolume afterwards", err, codes.NotFound)
	}
}

// ---- in use ----

func deleteInUse(t *trial) {
	for _, k := range []kind{tree, ext4, device} {
		p := t.used(k)
		t.write(p, 1)
		t.code(k.name+" while it is published", t.deleteVolume(p.id), codes.FailedPrecondition)
		t.reads(p, 1)
		t.ok("NodeUnpublishVolume", t.unpublish(p))
		t.code(k.name+" while it is staged", t.deleteVolume(p.id), codes.FailedPrecondition)
		t.ok("NodeUnstageVolume", t.unstage(p))
		_, err := t.ControllerPublishVolume(t.ctx, &csi.ControllerPublishVolumeRequest{
			VolumeId: p.id, NodeId: t.nodeID(), VolumeCapability: k.capability()})
		t.ok("ControllerPublishVolume", err)
		t.code(k.name+" while it is attached", t.deleteVolume(p.id), codes.FailedPrecondition)
		_, err = t.ControllerUnpublishVolume(t.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: p.id})
		t.ok("ControllerUnpublishVolume", err)
		t.ok(k.name+" while nobody uses it", t.deleteVolume(p.id))
	}
}

func attachAgain(t *trial) {
	volume := t.create(t.request(tree)).VolumeId
	request := &csi.ControllerPublishVolumeRequest{VolumeId: volume, NodeId: t.nodeID(), VolumeCapability: tree.capability()}
	attach := func() error { _, err := t.ControllerPublishVolume(t.ctx, request); return err }
	t.later(func() error {
		_, err := t.ControllerUnpublishVolume(t.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume})
		return err
	})
	nodes := func() int {
		response, err := t.ControllerGetVolume(t.ctx, &csi.ControllerGetVolumeRequest{VolumeId: volume})
		t.ok("ControllerGetVolume", err)
		return len(response.Status.PublishedNodeIds)
	}
	equal(t, "nodes before", nodes(), 0)
	t.ok("once", attach())
	t.ok("again", attach())
	equal(t, "nodes", nodes(), 1)
	request.Readonly = true
	t.code("read-only", attach(), codes.AlreadyExists)
	request.Readonly = false
	request.VolumeCapability = withMode(tree.capability(), manyWriters)
	t.code("with another mode", attach(), codes.AlreadyExists)
	_, err := t.ControllerUnpublishVolume(t.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: "other"})
	t.ok("ControllerUnpublishVolume from another node", err)
	equal(t, "nodes", nodes(), 1)
	for range 2 {
		_, err = t.ControllerUnpublishVolume(t.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: t.nodeID()})
		t.ok("ControllerUnpublishVolume", err)
		equal(t, "nodes afterwards", nodes(), 0)
	}
}
