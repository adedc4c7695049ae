// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// How large volumes become.
var capacityFacts = []fact{
	{"a size is between required and limit", sizesInRange},
	{"a limit alone is kept to", limitAlone},
	{"sizes that cannot be are refused", impossibleSizes},
	{"the device has the size that is told", deviceHasTheSize},
	{"a file system gets as much as it needs", enoughForFileSystem},
	{"a clone is no smaller than its source", cloneSizes},
	{"expanding keeps to its limits", expandLimits},
	{"GetCapacity tells of this node alone", capacityHere},
	{"GetCapacity falls as volumes fill", capacityFalls},
}

func sizesInRange(t *trial) {
	for _, k := range allKinds {
		for _, more := range []int64{0, 1, 4095, 4096, mib - 1} {
			request := t.request(k)
			request.CapacityRange = bytesRange(k.size+more, k.size+2*mib)
			size := t.create(request).CapacityBytes
			t.that(size >= k.size+more && size <= k.size+2*mib, "%s: %d bytes are within %v", k.name, size,
				request.CapacityRange)
		}
	}
}

func limitAlone(t *trial) {
	for _, k := range allKinds {
		request := t.request(k)
		request.CapacityRange = bytesRange(0, k.size)
		size := t.create(request).CapacityBytes
		t.that(size <= k.size, "%s: %d bytes are within the limit", k.name, size)
	}
}

func impossibleSizes(t *trial) {
	for _, k := range allKinds {
		for what, sizes := range map[string]*csi.CapacityRange{
			"required over limit": bytesRange(2*k.size, k.size),
			"negative":            bytesRange(-1, 0),
			"negative limit":      bytesRange(0, -1),
			"most negative":       bytesRange(math.MinInt64, math.MinInt64),
		} {
			request := t.request(k)
			request.CapacityRange = sizes
			_, err := t.tryCreate(request)
			t.code(k.name+": "+what, err, codes.InvalidArgument)
		}
		request := t.request(k)
		request.CapacityRange = bytesRange(math.MaxInt64, 0)
		_, err := t.tryCreate(request)
		t.code(k.name+" of 8 EiB", err, codes.OutOfRange)
	}
	for _, k := range []kind{ext4, xfs, btrfs} {
		request := t.request(k)
		request.CapacityRange = bytesRange(0, 100*kib)
		_, err := t.tryCreate(request)
		t.code(k.name+" of 100 KiB", err, codes.OutOfRange)
	}
	// No device has half a sector, and less than was required is not enough.
	request := t.request(device)
	request.CapacityRange = bytesRange(device.size+1, device.size+1)
	_, err := t.tryCreate(request)
	t.code("a device with an odd number of bytes", err, codes.OutOfRange)
}

func deviceHasTheSize(t *trial) {
	for _, size := range []int64{mib, device.size + 1, device.size + 512, device.size + 4096} {
		request := t.request(device)
		request.CapacityRange = bytesRange(size, 0)
		volume := t.create(request)
		p := t.use(volume, block())
		equal(t, "bytes of the device", t.deviceBytes(p.target), volume.CapacityBytes)
		t.that(volume.CapacityBytes >= size, "%d bytes are at least %d", volume.CapacityBytes, size)
	}
}

// xfs and btrfs do not exist smaller than a few hundred MiB.
func enoughForFileSystem(t *trial) {
	for _, k := range []kind{xfs, btrfs} {
		request := t.request(k)
		request.CapacityRange = bytesRange(mib, 0)
		volume := t.create(request)
		t.write(t.use(volume, k.capability()), 1)
		request = t.request(k)
		request.CapacityRange = bytesRange(mib, volume.CapacityBytes-1)
		_, err := t.tryCreate(request)
		t.code(k.name+" limited to less", err, codes.OutOfRange)
	}
}

func cloneSizes(t *trial) {
	for _, k := range []kind{tree, device} {
		source := t.create(t.request(k)).VolumeId
		for _, from := range []*csi.VolumeContentSource{fromVolume(source), fromSnapshot(t.snapshot(source).SnapshotId)} {
			request := t.copyOf(k, from)
			request.CapacityRange = nil
			equal(t, "the size when none is asked for", t.create(request).CapacityBytes, k.size)
			request = t.copyOf(k, from)
			request.CapacityRange = bytesRange(mib, 0)
			t.that(t.create(request).CapacityBytes >= k.size, "asked for less, it has what the source has")
			request = t.copyOf(k, from)
			request.CapacityRange = bytesRange(mib, k.size/2)
			_, err := t.tryCreate(request)
			t.code("limited to less than the source", err, codes.OutOfRange)
		}
	}
}

// grow expands a volume as far as the controller does it.
func (t *trial) grow(id string, size int64) bool {
	response, err := t.ControllerExpandVolume(t.ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: bytesRange(size, 0)})
	t.ok("ControllerExpandVolume", err)
	equal(t, "the size after ControllerExpandVolume", response.CapacityBytes, size)
	return response.NodeExpansionRequired
}

func expandLimits(t *trial) {
	for _, k := range []kind{tree, device} {
		id := t.create(t.request(k)).VolumeId
		expand := func(sizes *csi.CapacityRange) (int64, error) {
			response, err := t.ControllerExpandVolume(t.ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: sizes})
			return response.GetCapacityBytes(), err
		}
		for _, sizes := range []*csi.CapacityRange{bytesRange(k.size, 0), bytesRange(mib, 0), bytesRange(0, k.size)} {
			size, err := expand(sizes)
			t.ok("large enough already", err)
			equal(t, "the size that it has", size, k.size)
		}
		_, err := expand(bytesRange(0, k.size-1))
		t.code("a limit below its size", err, codes.OutOfRange)
		_, err = expand(bytesRange(math.MaxInt64, 0))
		t.code("8 EiB", err, codes.OutOfRange)
		_, err = expand(bytesRange(-1, 0))
		t.code("a negative size", err, codes.InvalidArgument)
		_, err = expand(bytesRange(2*k.size, k.size))
		t.code("required over limit", err, codes.InvalidArgument)
		size, err := expand(bytesRange(k.size+mib+1, k.size+2*mib))
		t.ok("a size that is no multiple of anything", err)
		t.that(size > k.size+mib && size <= k.size+2*mib, "%d bytes are within the range", size)
	}
}

func (t *trial) capacity(topology *csi.Topology) int64 {
	response, err := t.GetCapacity(t.ctx, &csi.GetCapacityRequest{AccessibleTopology: topology})
	t.ok("GetCapacity", err)
	return response.AvailableCapacity
}

func capacityHere(t *trial) {
	response, err := t.GetCapacity(t.ctx, &csi.GetCapacityRequest{})
	t.ok("GetCapacity", err)
	t.that(response.AvailableCapacity > 0, "there is space (%d bytes)", response.AvailableCapacity)
	t.that(response.MaximumVolumeSize.GetValue() > 0, "there is a largest volume")
	t.that(t.capacity(t.here()) > 0, "there is space on this node")
	equal(t, "space on another node", t.capacity(elsewhere(t)), 0)
}

// settledCapacity waits until what was deleted before is freed: btrfs tells the free space as of its last commit, and frees in the background.
func (t *trial) settledCapacity(p place) int64 {
	last := int64(-1)
	for range 50 {
		t.syncFileSystem(p.target)
		now := t.capacity(nil)
		if now == last {
			break
		}
		last = now
		time.Sleep(200 * time.Millisecond)
	}
	return last
}

func capacityFalls(t *trial) {
	if !t.ownsSpace {
		t.skip("others use the same space")
	}
	p := t.used(tree)
	before := t.settledCapacity(p)
	t.writeFile(p.file(), content(1, int(24*mib)))
	after := t.settledCapacity(p)
	t.that(before-after >= 20*mib, "24 MiB of data make the space smaller (%d, then %d bytes)", before, after)
}
