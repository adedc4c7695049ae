// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// How volumes are.
var healthFacts = slices.Concat(
	forKinds("a volume that is unmounted behind its back is not well", []kind{tree, ext4, device}, unmountedIsIll),
	[]fact{
		{"a volume that is well says so", wellVolume},
		{"only ill volumes are listed", listOfIll},
		{"the storage is well", storageIsWell},
	},
)

// condition reads VolumeCondition, which CSI 1.13 has removed: field 2 of the message, abnormal = 1 in it.
func (t *trial) isAbnormal(message proto.Message) bool {
	raw := message.ProtoReflect().GetUnknown()
	for len(raw) > 0 {
		number, kind, size := protowire.ConsumeTag(raw)
		t.that(size > 0, "the message can be read")
		value := protowire.ConsumeFieldValue(number, kind, raw[size:])
		t.that(value >= 0, "the field can be read")
		if number == 2 && kind == protowire.BytesType {
			condition, _ := protowire.ConsumeBytes(raw[size:])
			return len(condition) >= 2 && condition[0] == 1<<3 && condition[1] == 1
		}
		raw = raw[size+value:]
	}
	t.fail("there is no VolumeCondition")
	return false
}

func (t *trial) complaints(p place) []*csi.VolumeHealth_VolumeHealthEntry {
	node, err := t.NodeGetVolumeHealth(t.ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: p.id,
		VolumePublishPath: p.target, StagingTargetPath: p.staging})
	t.ok("NodeGetVolumeHealth", err)
	controller, err := t.ControllerGetVolumeHealth(t.ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: p.id})
	t.ok("ControllerGetVolumeHealth", err)
	equal(t, "the volume", controller.VolumeHealth.VolumeId, p.id)
	equal(t, "complaints of the node and of the controller", node.VolumeHealth.String(), controller.VolumeHealth.String())
	return node.VolumeHealth.HealthStatuses
}

func (t *trial) conditions(p place) map[string]bool {
	stats, err := t.NodeGetVolumeStats(t.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: p.id, VolumePath: p.target})
	t.ok("NodeGetVolumeStats", err)
	volume, err := t.ControllerGetVolume(t.ctx, &csi.ControllerGetVolumeRequest{VolumeId: p.id})
	t.ok("ControllerGetVolume", err)
	return map[string]bool{
		"NodeGetVolumeStats":  t.isAbnormal(stats),
		"ControllerGetVolume": t.isAbnormal(volume.Status),
	}
}

func wellVolume(t *trial) {
	for _, k := range allKinds {
		p := t.used(k)
		equal(t, "complaints of "+k.name, len(t.complaints(p)), 0)
		for name, abnormal := range t.conditions(p) {
			t.that(!abnormal, "%s: %s tells that it is well", k.name, name)
		}
		list, err := t.ListVolumes(t.ctx, &csi.ListVolumesRequest{})
		t.ok("ListVolumes", err)
		for _, entry := range list.Entries {
			t.that(!t.isAbnormal(entry.Status), "ListVolumes tells that it is well")
		}
	}
}

func unmountedIsIll(t *trial, k kind) {
	p := t.used(k)
	t.write(p, 1)
	t.unmount(p.target)
	found := t.complaints(p)
	equal(t, "complaints", len(found), 1)
	equal(t, "the reason", found[0].Reason, "NotMounted")
	equal(t, "the status", found[0].Status, csi.VolumeHealthErrorType_INACCESSIBLE)
	t.that(found[0].Message != "", "there is a message")
	for name, abnormal := range t.conditions(p) {
		t.that(abnormal, "%s tells of it", name)
	}
	t.ok("NodePublishVolume", t.tryPublish(p))
	equal(t, "complaints after the repair", len(t.complaints(p)), 0)
	for name, abnormal := range t.conditions(p) {
		t.that(!abnormal, "%s tells that it is well again", name)
	}
	t.reads(p, 1)
}

func (t *trial) listIll(most int32) []string {
	var found []string
	for next, more := "", true; more; more = next != "" {
		page, err := t.ControllerListVolumeHealth(t.ctx, &csi.ControllerListVolumeHealthRequest{MaxEntries: most, StartingToken: next})
		t.ok("ControllerListVolumeHealth", err)
		t.that(most == 0 || len(page.Entries) <= int(most), "a page has no more than was asked for")
		for _, entry := range page.Entries {
			t.that(len(entry.HealthStatuses) > 0, "those that are listed have a complaint")
			found = append(found, entry.VolumeId)
		}
		next = page.NextToken
	}
	return found
}

func listOfIll(t *trial) {
	equal(t, "ill volumes before", len(t.listIll(0)), 0)
	var ill []string
	for i := range 7 {
		p := t.used(tree)
		if i%2 == 1 {
			t.unmount(p.target)
			t.ok("remove the target", os.Remove(p.target))
			ill = append(ill, p.id)
		}
	}
	for _, most := range []int32{0, 1, 2, 3, 4} {
		t.that(slices.Equal(slices.Sorted(slices.Values(t.listIll(most))), slices.Sorted(slices.Values(ill))), "in pages of %d, the ill ones are listed", most)
	}
}

func storageIsWell(t *trial) {
	response, err := t.NodeGetStorageHealth(t.ctx, &csi.NodeGetStorageHealthRequest{})
	t.ok("NodeGetStorageHealth", err)
	equal(t, "complaints", len(response.BackendHealth), 0)
	probe, err := t.Probe(t.ctx, &csi.ProbeRequest{})
	t.ok("Probe", err)
	t.that(probe.Ready.GetValue(), "the driver is ready")
}
