// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// Lists, and questions about one volume.
var listFacts = []fact{
	{"ListVolumes page by page", pagesOfVolumes},
	{"pages of volumes are stable while volumes go", volumePagesUnderDeletes},
	{"pages of snapshots are stable while snapshots go", snapshotPagesUnderDeletes},
	{"pages of one volume's snapshots", pagesOfOneSource},
	{"tokens that nobody gave out are ABORTED", strangeTokens},
	{"an unpublished volume has no nodes", noNodes},
	{"ValidateVolumeCapabilities confirms what is so", confirmed},
	{"ValidateVolumeCapabilities does not confirm what is not", notConfirmed},
	{"mutable parameters change all or nothing", modifyAllOrNothing},
}

func (t *trial) page(after string, most int32) ([]string, string) {
	response, err := t.ListVolumes(t.ctx, &csi.ListVolumesRequest{StartingToken: after, MaxEntries: most})
	t.ok("ListVolumes", err)
	var ids []string
	for _, entry := range response.Entries {
		ids = append(ids, entry.Volume.VolumeId)
	}
	t.that(most == 0 || len(ids) <= int(most), "a page has no more than was asked for")
	return ids, response.NextToken
}

func (t *trial) volumes() []string {
	ids, next := t.page("", 0)
	equal(t, "the token after everything", next, "")
	return ids
}

func pagesOfVolumes(t *trial) {
	for range 7 {
		t.create(t.request(tree))
	}
	wanted := t.volumes()
	t.that(len(wanted) >= 7, "all are listed")
	for _, most := range []int32{1, 2, 3, 7, 100} {
		var found []string
		ids, next := t.page("", most)
		for found = ids; next != "" && len(found) <= len(wanted); found = append(found, ids...) {
			ids, next = t.page(next, most)
		}
		equal(t, "volumes on all pages", len(found), len(wanted))
		for i := range found {
			equal(t, "the order", found[i], wanted[i])
		}
	}
}

func volumePagesUnderDeletes(t *trial) {
	for range 9 {
		t.create(t.request(tree))
	}
	all := t.volumes()
	first, next := t.page("", 4)
	// One that was told, the last that was told (where the token points), and one that was not yet.
	for _, gone := range []string{first[0], first[3], all[6]} {
		t.ok("DeleteVolume", t.deleteVolume(gone))
	}
	late := t.create(t.request(tree)).VolumeId
	rest, _ := t.page(next, 0)
	told := map[string]int{}
	for _, id := range rest {
		told[id]++
	}
	for i, id := range all[4:] {
		wanted := 1
		if i+4 == 6 {
			wanted = 0
		}
		equal(t, "how often a volume is told", told[id], wanted)
	}
	equal(t, "how often a later volume is told", told[late], 1)
	for _, id := range first {
		equal(t, "how often an earlier volume is told again", told[id], 0)
	}
}

// snapshots lists those of one volume, or all, in pages of that size.
func (t *trial) snapshots(source string, most int32) []string {
	var found []string
	for next, more := "", true; more; more = next != "" {
		page, err := t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{SourceVolumeId: source, MaxEntries: most, StartingToken: next})
		t.ok("ListSnapshots", err)
		t.that(most == 0 || len(page.Entries) <= int(most), "a page has no more than was asked for")
		t.that(len(found) < 1000, "the pages end")
		for _, entry := range page.Entries {
			found = append(found, entry.Snapshot.SnapshotId)
		}
		next = page.NextToken
	}
	return found
}

func snapshotPagesUnderDeletes(t *trial) {
	source := t.create(t.request(tree)).VolumeId
	for range 8 {
		t.snapshot(source)
	}
	all := t.snapshots("", 0)
	page, err := t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{MaxEntries: 3})
	t.ok("ListSnapshots", err)
	equal(t, "snapshots on the page", len(page.Entries), 3)
	for _, gone := range []string{all[0], all[2], all[5]} {
		t.ok("DeleteSnapshot", t.deleteSnapshot(gone))
	}
	rest, err := t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{StartingToken: page.NextToken})
	t.ok("ListSnapshots", err)
	wanted := []string{all[3], all[4], all[6], all[7]}
	equal(t, "snapshots that are left", len(rest.Entries), len(wanted))
	for i, entry := range rest.Entries {
		equal(t, "the order", entry.Snapshot.SnapshotId, wanted[i])
	}
}

func pagesOfOneSource(t *trial) {
	one, two := t.create(t.request(tree)).VolumeId, t.create(t.request(tree)).VolumeId
	var made []string
	for range 5 {
		made = append(made, t.snapshot(one).SnapshotId)
		t.snapshot(two)
	}
	wanted := t.snapshots(one, 0)
	t.that(slices.Equal(slices.Sorted(slices.Values(wanted)), slices.Sorted(slices.Values(made))), "all of the volume's are listed")
	for _, most := range []int32{1, 2, 5, 6} {
		t.that(slices.Equal(t.snapshots(one, most), wanted), "pages of %d tell the same", most)
	}
}

func strangeTokens(t *trial) {
	t.create(t.request(tree))
	for _, token := range []string{"0", "-1", "1", "11", "99999999999999999999", "token", "v:", "s:local/", "v:local/../x"} {
		_, err := t.ListVolumes(t.ctx, &csi.ListVolumesRequest{StartingToken: token, MaxEntries: 10})
		t.code("ListVolumes from "+token, err, codes.Aborted)
		_, err = t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{StartingToken: token})
		t.code("ListSnapshots from "+token, err, codes.Aborted)
		_, err = t.ControllerListVolumeHealth(t.ctx, &csi.ControllerListVolumeHealthRequest{StartingToken: token})
		t.code("ControllerListVolumeHealth from "+token, err, codes.Aborted)
	}
	_, err := t.ListVolumes(t.ctx, &csi.ListVolumesRequest{MaxEntries: -1})
	t.code("a page of -1", err, codes.InvalidArgument)
	_, err = t.ListSnapshots(t.ctx, &csi.ListSnapshotsRequest{MaxEntries: -1})
	t.code("a page of -1 snapshots", err, codes.InvalidArgument)
}

func noNodes(t *trial) {
	volume := t.create(t.request(tree)).VolumeId
	response, err := t.ListVolumes(t.ctx, &csi.ListVolumesRequest{})
	t.ok("ListVolumes", err)
	for _, entry := range response.Entries {
		if entry.Volume.VolumeId == volume {
			equal(t, "nodes", len(entry.Status.PublishedNodeIds), 0)
		}
	}
}

// ---- ValidateVolumeCapabilities ----

func (t *trial) validate(request *csi.ValidateVolumeCapabilitiesRequest) *csi.ValidateVolumeCapabilitiesResponse {
	response, err := t.ValidateVolumeCapabilities(t.ctx, request)
	t.ok("ValidateVolumeCapabilities", err)
	if response.Confirmed == nil {
		t.that(response.Message != "", "what is not confirmed has a reason")
	}
	return response
}

var labelOne = map[string]string{"label": "one"}

func confirmed(t *trial) {
	for _, k := range allKinds {
		create := t.request(k)
		create.Parameters, create.MutableParameters = labelOne, labelOne
		volume := t.create(create)
		request := &csi.ValidateVolumeCapabilitiesRequest{VolumeId: volume.VolumeId,
			VolumeCapabilities: []*csi.VolumeCapability{k.capability(), withMode(k.capability(), manyWriters)}}
		t.that(t.validate(request).Confirmed != nil, "%s is confirmed", k.name)
		request.Parameters, request.MutableParameters, request.VolumeContext = labelOne, labelOne, volume.VolumeContext
		found := t.validate(request).Confirmed
		t.that(found != nil, "%s is confirmed with its parameters", k.name)
		equal(t, "capabilities that are confirmed", len(found.VolumeCapabilities), 2)
		t.that(maps.Equal(found.Parameters, labelOne), "the parameters are among what is confirmed")
		t.that(maps.Equal(found.MutableParameters, labelOne), "the mutable parameters are among what is confirmed")
	}
}

func notConfirmed(t *trial) {
	create := t.request(ext4)
	create.Parameters, create.MutableParameters = labelOne, labelOne
	volume := t.create(create)
	for name, change := range map[string]func(*csi.ValidateVolumeCapabilitiesRequest){
		"another file system": func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities[0] = mounted("xfs") },
		"an unknown one":      func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities[0] = mounted("ntfs") },
		"a tree":              func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities[0] = mounted("none") },
		"one of two": func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.VolumeCapabilities = append(r.VolumeCapabilities, mounted("xfs"))
		},
		"other parameters": func(r *csi.ValidateVolumeCapabilitiesRequest) { r.Parameters = map[string]string{"label": "two"} },
		"other mutable parameters": func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.MutableParameters = map[string]string{"label": "two"}
		},
		"another context": func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeContext = map[string]string{"a": "b"} },
	} {
		request := &csi.ValidateVolumeCapabilitiesRequest{VolumeId: volume.VolumeId,
			VolumeCapabilities: []*csi.VolumeCapability{ext4.capability()}}
		change(request)
		t.that(t.validate(request).Confirmed == nil, "%s is not confirmed", name)
	}
	directory := t.create(t.request(tree))
	request := &csi.ValidateVolumeCapabilitiesRequest{VolumeId: directory.VolumeId, VolumeCapabilities: []*csi.VolumeCapability{block()}}
	t.that(t.validate(request).Confirmed == nil, "a tree is not confirmed as a block device")
}

func modifyAllOrNothing(t *trial) {
	create := t.request(tree)
	create.MutableParameters = labelOne
	volume := t.create(create).VolumeId
	modify := func(change map[string]string) error {
		_, err := t.ControllerModifyVolume(t.ctx, &csi.ControllerModifyVolumeRequest{VolumeId: volume, MutableParameters: change})
		return err
	}
	has := func(label string) bool {
		return t.validate(&csi.ValidateVolumeCapabilitiesRequest{VolumeId: volume, MutableParameters: map[string]string{"label": label},
			VolumeCapabilities: []*csi.VolumeCapability{tree.capability()}}).Confirmed != nil
	}
	t.ok("ControllerModifyVolume of nothing", modify(nil))
	t.code("a known and an unknown key", modify(map[string]string{"label": "two", "unknown": "x"}), codes.InvalidArgument)
	t.code("a known and a fixed key", modify(map[string]string{"label": "two", "nocow": "true"}), codes.InvalidArgument)
	t.code("a known key and a bad value", modify(map[string]string{"label": "two", "compression": "x"}), codes.InvalidArgument)
	t.that(has("one"), "nothing has changed")
	t.ok("ControllerModifyVolume", modify(map[string]string{"label": "two"}))
	t.that(has("two"), "the label has changed")
}
