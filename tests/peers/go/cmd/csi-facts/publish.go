// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// Staging and publishing, once and again.
var publishFacts = slices.Concat(
	forKinds("a second publication, by access mode", []kind{tree, ext4, device}, secondPublication),
	forKinds("staging again, and in another way", []kind{tree, ext4, device}, stageAgain),
	forKinds("published read-only", allKinds, publishedReadOnly),
	forKinds("a mode for readers reads only", allKinds, readerMode),
	forKinds("many calls at once", []kind{tree, ext4, device}, publishAtOnce),
	[]fact{
		{"publishing needs the staging", publishNeedsStaging},
		{"unstaging waits for unpublishing", unstageWhilePublished},
		{"a publication needs the directory above it", missingParent},
		{"what others have mounted is left alone", foreignMounts},
		{"unpublishing what is not published", unpublishNothing},
		{"a block device has no second way in as a file system", mixedAccess},
	},
)

// The table of the specification, for a driver with SINGLE_NODE_MULTI_WRITER.
var secondPath = map[mode]codes.Code{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        codes.FailedPrecondition,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   codes.FailedPrecondition,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: codes.FailedPrecondition,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  codes.OK,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    codes.OK,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  codes.OK,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   codes.OK,
}

func secondPublication(t *trial, k kind) {
	volume := t.create(t.request(k))
	for m, wanted := range secondPath {
		p := t.use(volume, withMode(k.capability(), m))
		t.ok(m.String()+": the same again", t.tryPublish(p))
		other := p
		other.readOnly = true
		if m != csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY && m != csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY {
			t.code(m.String()+": read-only", t.tryPublish(other), codes.AlreadyExists)
		}
		other = p
		other.capability = withMode(k.capability(), (m%7)+1)
		t.code(m.String()+": with another mode", t.tryPublish(other), codes.AlreadyExists)
		other = p
		other.target = t.path("second")
		t.code(m.String()+": at another path", t.tryPublish(other), wanted)
		if wanted == codes.OK {
			t.ok(m.String()+": at the other path again", t.tryPublish(other))
		}
		t.ok("NodeUnpublishVolume", t.unpublish(other))
		t.release(p)
	}
}

func stageAgain(t *trial, k kind) {
	p := t.stage(t.create(t.request(k)), k.capability())
	t.ok("the same again", t.tryStage(p))
	other := p
	other.capability = withMode(k.capability(), manyWriters)
	t.code("with another mode", t.tryStage(other), codes.AlreadyExists)
	if !k.isBlock() {
		other.capability = k.capability()
		other.capability.GetMount().MountFlags = []string{"noexec"}
		t.code("with other flags", t.tryStage(other), codes.AlreadyExists)
	}
	for range 2 {
		t.ok("NodeUnstageVolume", t.unstage(p))
		t.that(!t.isMounted(p.staging), "nothing is mounted afterwards")
	}
	p.capability = withMode(k.capability(), manyWriters)
	t.ok("NodeStageVolume in the other way", t.tryStage(p))
}

func publishedReadOnly(t *trial, k kind) {
	capability := withMode(k.capability(), manyWriters)
	writer := t.use(t.create(t.request(k)), capability)
	t.write(writer, 1)
	reader := writer
	reader.target, reader.readOnly = t.path("reader"), true
	t.publish(reader)
	t.ok("read-only again", t.tryPublish(reader))
	t.reads(reader, 1)
	t.refusesWrites(reader)
	if k.isBlock() {
		t.that(t.isReadOnlyDevice(reader.target), "the device is read-only")
		t.that(!t.isReadOnlyDevice(writer.target), "the writer's device is not")
	}
	t.write(writer, 2)
	t.reads(reader, 2)
	t.ok("NodeUnpublishVolume of the reader", t.unpublish(reader))
	t.write(writer, 3)
	t.ok("publish it read-only again", t.tryPublish(reader))
	t.ok("NodeUnpublishVolume of the writer", t.unpublish(writer))
	t.reads(reader, 3)
	t.refusesWrites(reader)
}

func readerMode(t *trial, k kind) {
	volume := t.create(t.request(k))
	p := t.use(volume, k.capability())
	t.write(p, 1)
	t.release(p)
	for _, m := range []mode{csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY} {
		p = t.use(volume, withMode(k.capability(), m))
		t.reads(p, 1)
		t.refusesWrites(p)
		t.ok("again", t.tryPublish(p))
		t.release(p)
	}
}

func publishAtOnce(t *trial, k kind) {
	volume := t.create(t.request(k))
	p := place{id: volume.VolumeId, capability: k.capability(), staging: t.directory("staging"), target: t.path("target")}
	t.later(func() error { return t.unstage(p) })
	t.later(func() error { return t.unpublish(p) })
	t.atOnce(8, func() (string, error) { return "", t.tryStage(p) })
	t.atOnce(8, func() (string, error) { return "", t.tryPublish(p) })
	t.write(p, 1)
	t.atOnce(8, func() (string, error) { return "", t.unpublish(p) })
	t.atOnce(8, func() (string, error) { return "", t.unstage(p) })
	t.that(!t.isMounted(p.target) && !t.isMounted(p.staging), "nothing is mounted afterwards")
}

func publishNeedsStaging(t *trial) {
	volume := t.create(t.request(tree))
	p := place{id: volume.VolumeId, capability: tree.capability(), target: t.path("target")}
	t.code("without a staging path", t.tryPublish(p), codes.FailedPrecondition)
	p.staging = t.directory("staging")
	t.code("not staged there", t.tryPublish(p), codes.FailedPrecondition)
	_, err := os.Lstat(p.target)
	t.that(os.IsNotExist(err), "the target path was not made")
	staged := t.stage(volume, tree.capability())
	p.staging = staged.staging
	p.capability = block()
	t.code("as a block device", t.tryPublish(p), codes.FailedPrecondition)
	p.capability = mounted("xfs")
	t.code("as xfs", t.tryPublish(p), codes.FailedPrecondition)
}

func unstageWhilePublished(t *trial) {
	for _, k := range []kind{tree, ext4, device} {
		p := t.used(k)
		t.write(p, 1)
		t.code(k.name, t.unstage(p), codes.FailedPrecondition)
		t.reads(p, 1)
	}
}

func missingParent(t *trial) {
	for _, k := range []kind{tree, device} {
		p := t.stage(t.create(t.request(k)), k.capability())
		p.target = t.path("missing") + "/target"
		t.code(k.name, t.tryPublish(p), codes.FailedPrecondition)
		p.target = t.path("target")
		t.publish(p)
	}
}

func foreignMounts(t *trial) {
	volume := t.create(t.request(tree))
	place1 := t.directory("foreign")
	t.mountForeign(place1)
	p := place{id: volume.VolumeId, capability: tree.capability(), staging: place1, target: place1}
	t.code("NodeStageVolume there", t.tryStage(p), codes.FailedPrecondition)
	t.ok("NodeUnstageVolume there", t.unstage(p))
	p.staging = t.stage(volume, tree.capability()).staging
	t.code("NodePublishVolume there", t.tryPublish(p), codes.FailedPrecondition)
	t.code("NodeUnpublishVolume there", t.unpublish(p), codes.FailedPrecondition)
	t.that(t.isMounted(place1), "it is still mounted")
}

func unpublishNothing(t *trial) {
	p := t.stage(t.create(t.request(tree)), tree.capability())
	t.ok("a path that is not there", t.unpublish(p))
	t.ok("make a directory", os.Mkdir(p.target, 0o755))
	t.ok("an empty directory", t.unpublish(p))
	_, err := os.Lstat(p.target)
	t.that(os.IsNotExist(err), "it was removed")
	t.ok("make a directory", os.Mkdir(p.target, 0o755))
	t.later(func() error { return os.RemoveAll(p.target) })
	t.writeFile(p.target+"/precious", []byte("data"))
	t.code("a directory with files", t.unpublish(p), codes.FailedPrecondition)
	_, err = os.Stat(p.target + "/precious")
	t.ok("the file is still there", err)
}

func mixedAccess(t *trial) {
	request := t.request(ext4)
	request.VolumeCapabilities = append(request.VolumeCapabilities, block())
	volume := t.create(request)
	p := t.use(volume, ext4.capability())
	other := place{id: volume.VolumeId, capability: block(), staging: t.directory("other")}
	t.code("as a device while it is mounted", t.tryStage(other), codes.FailedPrecondition)
	t.write(p, 1)
	t.release(p)
	raw := t.use(volume, block())
	t.that(t.deviceBytes(raw.target) == volume.CapacityBytes, "it is a device now")
	t.release(raw)
	t.reads(t.use(volume, ext4.capability()), 1)
}
