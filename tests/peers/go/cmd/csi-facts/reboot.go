// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// A machine that was rebooted: the orchestrator stages and publishes anew, or takes down what it thinks is there.
var (
	beforeRebootFacts = forKinds("published before the reboot", allKinds, beforeReboot)
	afterRebootFacts  = slices.Concat(
		forKinds("staged and published again after the reboot", allKinds, publishedAfterReboot),
		forKinds("taken down after the reboot", allKinds, takenDownAfterReboot),
		forKinds("deleted after the reboot", allKinds, deletedAfterReboot),
		lastFacts,
	)
)

var rebootEnds = []string{"published", "taken-down", "deleted"}

// atReboot is where a volume of that kind was at the time; it is found again by its name.
func (t *trial) atReboot(k kind, end string) (*csi.CreateVolumeRequest, place) {
	request := t.request(k)
	request.Name = fmt.Sprintf("at the reboot: %s, %s", k.name, end)
	base := filepath.Join(t.dir, "reboot-"+k.name+"-"+end)
	return request, place{capability: k.capability(), staging: base + "-staging", target: base + "-target"}
}

func beforeReboot(t *trial, k kind) {
	for i, end := range rebootEnds {
		request, p := t.atReboot(k, end)
		response, err := t.CreateVolume(t.ctx, request)
		t.ok("CreateVolume", err)
		p.id = response.Volume.VolumeId
		t.ok("make a directory", os.Mkdir(p.staging, 0o755))
		t.ok("NodeStageVolume", t.tryStage(p))
		t.ok("NodePublishVolume", t.tryPublish(p))
		t.write(p, uint64(i))
	}
}

// found finds the volume, and undoes everything at the end.
func (t *trial) found(k kind, end string) place {
	request, p := t.atReboot(k, end)
	p.id = t.create(request).VolumeId
	t.later(func() error { return os.RemoveAll(p.staging) })
	t.later(func() error { return t.unstage(p) })
	t.later(func() error { return t.unpublish(p) })
	t.that(!t.isMounted(p.staging) && !t.isMounted(p.target), "the reboot has unmounted everything")
	return p
}

func publishedAfterReboot(t *trial, k kind) {
	p := t.found(k, "published")
	t.ok("NodeStageVolume", t.tryStage(p))
	t.ok("NodePublishVolume", t.tryPublish(p))
	t.reads(p, 0)
	t.write(p, 5)
	t.release(p)
	t.reads(t.use(&csi.Volume{VolumeId: p.id}, k.capability()), 5)
}

func takenDownAfterReboot(t *trial, k kind) {
	p := t.found(k, "taken-down")
	t.release(p)
	t.reads(t.use(&csi.Volume{VolumeId: p.id}, k.capability()), 1)
}

func deletedAfterReboot(t *trial, k kind) {
	p := t.found(k, "deleted")
	t.ok("DeleteVolume", t.deleteVolume(p.id))
}
