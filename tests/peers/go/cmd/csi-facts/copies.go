// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// Snapshots and clones.
var copyFacts = slices.Concat(
	forKinds("a snapshot is restored as it was cut", allKinds, snapshotIsRestored),
	forKinds("a snapshot outlives its volume", []kind{tree, ext4, device}, snapshotOutlives),
	forKinds("a clone of a volume in use", allKinds, cloneInUse),
	forKinds("two clones are mounted beside their source", allKinds, clonesAtOnce),
	forKinds("a clone into a larger size", allKinds, largerClone),
	[]fact{
		{"a source of another kind is refused", otherKindOfSource},
		{"what is behind the end of a source reads as zeros", zerosBehind},
		{"snapshots tell what they are", snapshotsTell},
	},
)

// atRest copies from a volume that is in use. Where a copy is made block by block, a raw device in use is refused, and has to be released first.
func (t *trial) atRest(p place, k kind, copying func()) place {
	if !k.isBlock() || t.cutsDevices {
		copying()
		return p
	}
	_, err := t.trySnapshot(t.unique("in-use"), p.id)
	t.code("a raw device in use", err, codes.FailedPrecondition)
	t.release(p)
	copying()
	return t.use(&csi.Volume{VolumeId: p.id}, k.capability())
}

func snapshotIsRestored(t *trial, k kind) {
	var snapshot *csi.Snapshot
	p := t.used(k)
	t.write(p, 1)
	p = t.atRest(p, k, func() { snapshot = t.snapshot(p.id) })
	t.write(p, 2)
	restored := t.use(t.create(t.copyOf(k, fromSnapshot(snapshot.SnapshotId))), k.capability())
	t.reads(restored, 1)
	t.write(restored, 3)
	t.reads(p, 2)
	t.reads(t.use(t.create(t.copyOf(k, fromSnapshot(snapshot.SnapshotId))), k.capability()), 1)
}

func snapshotOutlives(t *trial, k kind) {
	var snapshot *csi.Snapshot
	p := t.used(k)
	t.write(p, 1)
	p = t.atRest(p, k, func() { snapshot = t.snapshot(p.id) })
	t.release(p)
	t.ok("DeleteVolume", t.deleteVolume(p.id))
	found, err := t.GetSnapshot(t.ctx, &csi.GetSnapshotRequest{SnapshotId: snapshot.SnapshotId})
	t.ok("GetSnapshot", err)
	equal(t, "its source", found.Snapshot.SourceVolumeId, p.id)
	restored := t.use(t.create(t.copyOf(k, fromSnapshot(snapshot.SnapshotId))), k.capability())
	t.reads(restored, 1)
	t.ok("DeleteSnapshot", t.deleteSnapshot(snapshot.SnapshotId))
	t.reads(restored, 1)
}

func cloneInUse(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	var copied *csi.Volume
	p = t.atRest(p, k, func() { copied = t.create(t.copyOf(k, fromVolume(p.id))) })
	clone := t.use(copied, k.capability())
	t.reads(clone, 1)
	t.write(clone, 2)
	t.write(p, 3)
	t.reads(clone, 2)
	t.reads(p, 3)
}

// Copies of a file system have its UUID; xfs and btrfs look at that.
func clonesAtOnce(t *trial, k kind) {
	source := t.used(k)
	t.write(source, 1)
	var copies [2]*csi.Volume
	source = t.atRest(source, k, func() {
		for i := range copies {
			copies[i] = t.create(t.copyOf(k, fromVolume(source.id)))
		}
	})
	one, two := t.use(copies[0], k.capability()), t.use(copies[1], k.capability())
	for i, p := range []place{source, one, two} {
		t.reads(p, 1)
		t.write(p, uint64(10+i))
	}
	for i, p := range []place{source, one, two} {
		t.release(p)
		again := t.use(&csi.Volume{VolumeId: p.id}, k.capability())
		t.reads(again, uint64(10+i))
	}
}

func largerClone(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	request := t.copyOf(k, fromVolume(p.id))
	request.CapacityRange = bytesRange(2*k.size, 0)
	var volume *csi.Volume
	p = t.atRest(p, k, func() { volume = t.create(request) })
	equal(t, "the size that is told", volume.CapacityBytes, 2*k.size)
	clone := t.use(volume, k.capability())
	t.reads(clone, 1)
	if k.name != tree.name {
		t.that(t.size(clone) > t.size(p)+k.size*3/4, "it has become larger: %d, its source %d", t.size(clone), t.size(p))
	} else if t.enforcesTrees {
		t.that(t.fill(clone.target+"/more") > k.size*4/3, "more than the source's size can be written")
	}
}

func otherKindOfSource(t *trial) {
	sources := map[string]string{"tree": t.create(t.request(tree)).VolumeId, "xfs": t.create(t.request(xfs)).VolumeId}
	for _, c := range []struct {
		source string
		as     kind
	}{{"tree", ext4}, {"tree", device}, {"xfs", tree}, {"xfs", kind{"ext4", ext4.capability, xfs.size}}} {
		_, err := t.tryCreate(t.copyOf(c.as, fromVolume(sources[c.source])))
		t.code(c.source+" as "+c.as.name, err, codes.InvalidArgument)
		_, err = t.tryCreate(t.copyOf(c.as, fromSnapshot(t.snapshot(sources[c.source]).SnapshotId)))
		t.code("a snapshot of "+c.source+" as "+c.as.name, err, codes.InvalidArgument)
	}
}

func zerosBehind(t *trial) {
	p := t.used(device)
	t.writeFile(p.target, content(1, int(device.size)))
	request := t.copyOf(device, fromVolume(p.id))
	request.CapacityRange = bytesRange(2*device.size, 0)
	var volume *csi.Volume
	t.atRest(p, device, func() { volume = t.create(request) })
	clone := t.use(volume, block())
	found, err := os.ReadFile(clone.target)
	t.ok("read", err)
	t.that(bytes.Equal(found[:device.size], content(1, int(device.size))), "the first half is the source")
	t.that(bytes.Equal(found[device.size:], make([]byte, device.size)), "the second half is zero")
	_, err = io.ReadAtLeast(bytes.NewReader(found), make([]byte, 2*device.size), int(2*device.size))
	t.ok("the whole is there", err)
}

func snapshotsTell(t *trial) {
	volume := t.create(t.request(device))
	snapshot := t.snapshot(volume.VolumeId)
	equal(t, "size_bytes", snapshot.SizeBytes, device.size)
	equal(t, "source_volume_id", snapshot.SourceVolumeId, volume.VolumeId)
	t.that(snapshot.CreationTime.AsTime().Year() > 2020, "the time of its creation is told")
	equal(t, "group_snapshot_id", snapshot.GroupSnapshotId, "")
}
