// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// Volumes that grow, and volumes that are full.
var growFacts = slices.Concat(
	forKinds("grows while it is published", imageKinds, growsOnline),
	forKinds("grows while it is not used", imageKinds, growsOffline),
	forKinds("grows by its staging path", imageKinds, growsByStaging),
	forKinds("grows with the next staging alone", imageKinds, growsWithStaging),
	forKinds("is full at its size", []kind{ext4, xfs, btrfs}, imageIsFull),
	[]fact{
		{"a tree is full at its size, and grows", treeIsFull},
		{"a block device ends at its size", deviceEnds},
		{"NodeExpandVolume of what the controller has not grown", nodeFirst},
		{"stats tell bytes and inodes", statsTell},
		{"stats of a block device tell its size", statsOfDevice},
	},
)

func (t *trial) growOnNode(p place, path string, size int64) {
	response, err := t.NodeExpandVolume(t.ctx, &csi.NodeExpandVolumeRequest{VolumeId: p.id, VolumePath: path,
		CapacityRange: bytesRange(size, 0), StagingTargetPath: p.staging, VolumeCapability: p.capability})
	t.ok("NodeExpandVolume", err)
	equal(t, "the size after NodeExpandVolume", response.CapacityBytes, size)
}

// needsResources: the kernel lets ext4 grow while it is mounted only with CAP_SYS_RESOURCE.
func (t *trial) needsResources(k kind) {
	if k.name == ext4.name && !hasCapability(unix.CAP_SYS_RESOURCE) {
		t.skip("ext4 that is mounted grows only with CAP_SYS_RESOURCE")
	}
}

// hasGrown allows a file system what it needs for itself.
func (t *trial) hasGrown(p place, before, by int64) {
	after := t.size(p)
	t.that(after-before >= by*9/10 && after-before <= by, "it has grown by about %d bytes: from %d to %d", by, before, after)
}

func growsOnline(t *trial, k kind) {
	t.needsResources(k)
	p := t.used(k)
	t.write(p, 1)
	before := t.size(p)
	for step := int64(2); step <= 3; step++ {
		t.that(t.grow(p.id, step*k.size), "NodeExpandVolume is asked for")
		t.growOnNode(p, p.target, step*k.size)
		t.growOnNode(p, p.target, step*k.size)
		t.hasGrown(p, before, (step-1)*k.size)
		t.reads(p, 1)
	}
	t.write(p, 2)
	t.release(p)
	p = t.use(&csi.Volume{VolumeId: p.id}, k.capability())
	t.hasGrown(p, before, 2*k.size)
	t.reads(p, 2)
}

func growsOffline(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	before := t.size(p)
	t.release(p)
	t.grow(p.id, 2*k.size)
	p = t.use(&csi.Volume{VolumeId: p.id}, k.capability())
	t.growOnNode(p, p.target, 2*k.size)
	t.hasGrown(p, before, k.size)
	t.reads(p, 1)
}

func growsByStaging(t *trial, k kind) {
	t.needsResources(k)
	p := t.used(k)
	before := t.size(p)
	t.grow(p.id, 2*k.size)
	t.growOnNode(p, p.staging, 2*k.size)
	t.hasGrown(p, before, k.size)
}

func growsWithStaging(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	before := t.size(p)
	t.release(p)
	t.grow(p.id, 2*k.size)
	p = t.use(&csi.Volume{VolumeId: p.id}, k.capability())
	t.hasGrown(p, before, k.size)
	t.reads(p, 1)
}

func nodeFirst(t *trial) {
	p := t.used(device)
	expand := func(sizes *csi.CapacityRange) error {
		_, err := t.NodeExpandVolume(t.ctx, &csi.NodeExpandVolumeRequest{VolumeId: p.id, VolumePath: p.target, CapacityRange: sizes})
		return err
	}
	t.ok("without a size", expand(nil))
	t.ok("to what it has", expand(bytesRange(device.size, 0)))
	t.code("to more than it has", expand(bytesRange(2*device.size, 0)), codes.OutOfRange)
	t.code("to a limit below", expand(bytesRange(0, mib)), codes.OutOfRange)
	_, err := t.NodeExpandVolume(t.ctx, &csi.NodeExpandVolumeRequest{VolumeId: p.id, VolumePath: t.path("nowhere")})
	t.code("where it is not", err, codes.NotFound)
}

// ---- full ----

// near allows one percent, or 1 MiB.
func (t *trial) near(what string, got, wanted int64) {
	allowed := max(wanted/100, mib)
	t.that(got >= wanted-allowed && got <= wanted+allowed, "%s: %d bytes are near %d", what, got, wanted)
}

func treeIsFull(t *trial) {
	if !t.enforcesTrees {
		t.fitsAnyway()
		return
	}
	p := t.used(tree)
	t.near("written", t.fill(filepath.Join(p.target, "one")), tree.size)
	t.that(!t.grow(p.id, 2*tree.size), "the node need not do anything")
	t.near("written after it has grown", tree.size+t.fill(filepath.Join(p.target, "two")), 2*tree.size)
	t.ok("remove a file", os.Remove(filepath.Join(p.target, "one")))
	t.near("written after a file was removed", t.fill(filepath.Join(p.target, "three")), tree.size)
}

// fitsAnyway: a tree without a limit takes more than its size, and says so in no other way.
func (t *trial) fitsAnyway() {
	p := t.used(tree)
	t.writeFile(p.file(), content(1, int(tree.size+mib)))
}

func imageIsFull(t *trial, k kind) {
	p := t.used(k)
	found := t.fileSystem(p.target)
	available := int64(found.Bavail) * found.Bsize
	t.that(available > k.size/3 && available <= k.size, "%d bytes can be used of %d", available, k.size)
	written := t.fill(p.file())
	t.that(written <= k.size, "no more than its size is written (%d)", written)
	t.that(written >= available*95/100-mib, "%d bytes are written of the %d that were told", written, available)
}

func deviceEnds(t *trial) {
	p := t.used(device)
	file, err := os.OpenFile(p.target, os.O_RDWR, 0)
	t.ok("open", err)
	defer file.Close()
	written, err := io.Copy(file, io.LimitReader(zeros{}, 2*device.size))
	t.that(errors.Is(err, unix.ENOSPC), "it ends (%v)", err)
	equal(t, "bytes until then", written, device.size)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// ---- stats ----

func (t *trial) stats(p place) map[csi.VolumeUsage_Unit]*csi.VolumeUsage {
	response, err := t.NodeGetVolumeStats(t.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: p.id, VolumePath: p.target, StagingTargetPath: p.staging})
	t.ok("NodeGetVolumeStats", err)
	usage := map[csi.VolumeUsage_Unit]*csi.VolumeUsage{}
	for _, row := range response.Usage {
		usage[row.Unit] = row
		t.that(row.Available >= 0 && row.Total >= 0 && row.Used >= 0, "%v is not negative", row)
	}
	return usage
}

const filesMade = 200

func statsTell(t *trial) {
	for _, k := range []kind{tree, ext4, xfs, btrfs} {
		p := t.used(k)
		before := t.stats(p)
		t.that(before[csi.VolumeUsage_BYTES] != nil, "%s: bytes are told", k.name)
		t.that(before[csi.VolumeUsage_INODES] != nil, "%s: inodes are told", k.name)
		total := before[csi.VolumeUsage_BYTES].Total
		t.that(total >= k.size*3/4 && total <= k.size || k.name == tree.name && !t.enforcesTrees && total > 0,
			"%s: the total of %d bytes is about its size", k.name, total)
		t.writeFile(p.file(), content(1, int(8*mib)))
		for i := range filesMade {
			t.ok("make a file", os.WriteFile(filepath.Join(p.target, string(rune('a'+i))), nil, 0o644))
		}
		t.syncFileSystem(p.target)
		after := t.stats(p)
		grown := after[csi.VolumeUsage_BYTES].Used - before[csi.VolumeUsage_BYTES].Used
		t.that(grown >= 8*mib-64*kib && grown < 10*mib, "%s: 8 MiB more are used (%d)", k.name, grown)
		t.that(after[csi.VolumeUsage_BYTES].Available <= before[csi.VolumeUsage_BYTES].Available-7*mib, "%s: less is available", k.name)
		files := after[csi.VolumeUsage_INODES].Used - before[csi.VolumeUsage_INODES].Used
		t.that(files == filesMade+1 || k.name == btrfs.name, "%s: %d files more are told", k.name, files) // btrfs tells none
	}
}

func statsOfDevice(t *trial) {
	p := t.used(device)
	equal(t, "the total", t.stats(p)[csi.VolumeUsage_BYTES].Total, device.size)
	_, err := t.NodeGetVolumeStats(t.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: p.id, VolumePath: t.path("nowhere")})
	t.code("where it is not", err, codes.NotFound)
}
