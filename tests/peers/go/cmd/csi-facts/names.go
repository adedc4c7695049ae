// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// What names, ids, paths and maps may be.
var nameFacts = []fact{
	{"names of 128 bytes in any Unicode", namesOfAnyUnicode},
	{"names of 129 bytes are refused", tooLongNames},
	{"control characters in names are refused", controlCharacters},
	{"tab and newline are allowed in names", allowedWhitespace},
	{"ids of 128 bytes are looked up, of 129 refused", longIDs},
	{"node ids have 256 bytes", longNodeIDs},
	{"maps have 4 KiB and not more", largeMaps},
	{"mount flags have 4 KiB and not more", largeMountFlags},
	{"paths are absolute and go straight down", strangePaths},
	{"paths are as long as the system allows", longPaths},
	{"half a capability is refused", halfCapabilities},
}

const (
	longestText = 128
	longestMap  = 4096
)

func namesOfAnyUnicode(t *trial) {
	names := []string{
		strings.Repeat("n", longestText),
		strings.Repeat("ж", longestText/2),
		strings.Repeat("\U0001F9F3", longestText/4),
		strings.Repeat("../", longestText/3),
		strings.Repeat("/", longestText),
		".", "..", " ", "-rf", "%s%n", "a\\b\"c'd", "e\u0301", "\u00e9", "\u200b", "\ufffd", "\u00a0",
	}
	ids := map[string]string{}
	for _, name := range names {
		request := t.request(tree)
		request.Name = name
		volume := t.create(request)
		t.that(ids[volume.VolumeId] == "", "%q and %q are different volumes", name, ids[volume.VolumeId])
		ids[volume.VolumeId] = name
		snapshot, err := t.trySnapshot(name, volume.VolumeId)
		t.ok(fmt.Sprintf("CreateSnapshot %q", name), err)
		equal(t, "the volume again", t.create(request).VolumeId, volume.VolumeId)
		again, err := t.trySnapshot(name, volume.VolumeId)
		t.ok(fmt.Sprintf("CreateSnapshot %q again", name), err)
		equal(t, "the snapshot again", again.SnapshotId, snapshot.SnapshotId)
	}
}

// refusesName asks for a volume and a snapshot of that name.
func refusesName(t *trial, source, name string) {
	request := t.request(tree)
	request.Name = name
	_, err := t.tryCreate(request)
	t.code(fmt.Sprintf("CreateVolume %q", name), err, codes.InvalidArgument)
	_, err = t.trySnapshot(name, source)
	t.code(fmt.Sprintf("CreateSnapshot %q", name), err, codes.InvalidArgument)
}

func tooLongNames(t *trial) {
	source := t.create(t.request(tree)).VolumeId
	refusesName(t, source, strings.Repeat("n", longestText+1))
	refusesName(t, source, strings.Repeat("ж", longestText/2)+"n")
	refusesName(t, source, strings.Repeat("n", 100_000))
	refusesName(t, source, "")
}

func controlCharacters(t *trial) {
	source := t.create(t.request(tree)).VolumeId
	for r := rune(0); r <= 0x9f; r++ {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f {
			refusesName(t, source, "a"+string(r)+"b")
			refusesName(t, source, "a"+string(r))
		}
	}
}

func allowedWhitespace(t *trial) {
	request := t.request(tree)
	request.Name = "line\none\ttwo\r"
	t.create(request)
}

// callsWithID calls everything that takes the id of a volume or snapshot.
func (t *trial) callsWithID(id string) map[string]error {
	calls := map[string]error{}
	add := func(name string, err error) { calls[name] = err }
	p := place{id: id, capability: tree.capability(), staging: t.path("staging"), target: t.path("target")}
	capabilities := []*csi.VolumeCapability{p.capability}
	_, err := t.ControllerGetVolume(t.ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
	add("ControllerGetVolume", err)
	_, err = t.ValidateVolumeCapabilities(t.ctx, &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: id, VolumeCapabilities: capabilities})
	add("ValidateVolumeCapabilities", err)
	_, err = t.ControllerPublishVolume(t.ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: id, NodeId: t.nodeID(), VolumeCapability: p.capability})
	add("ControllerPublishVolume", err)
	_, err = t.ControllerExpandVolume(t.ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: bytesRange(mib, 0)})
	add("ControllerExpandVolume", err)
	_, err = t.ControllerModifyVolume(t.ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: id, MutableParameters: map[string]string{"label": "x"}})
	add("ControllerModifyVolume", err)
	_, err = t.ControllerGetVolumeHealth(t.ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: id})
	add("ControllerGetVolumeHealth", err)
	_, err = t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: t.unique("s"), SourceVolumeId: id})
	add("CreateSnapshot", err)
	_, err = t.GetSnapshot(t.ctx, &csi.GetSnapshotRequest{SnapshotId: id})
	add("GetSnapshot", err)
	_, err = t.CreateVolume(t.ctx, t.copyOf(tree, fromVolume(id)))
	add("CreateVolume from a volume", err)
	_, err = t.CreateVolume(t.ctx, t.copyOf(tree, fromSnapshot(id)))
	add("CreateVolume from a snapshot", err)
	add("NodeStageVolume", t.tryStage(p))
	add("NodePublishVolume", t.tryPublish(p))
	_, err = t.NodeGetVolumeStats(t.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: t.dir})
	add("NodeGetVolumeStats", err)
	_, err = t.NodeExpandVolume(t.ctx, &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: t.dir})
	add("NodeExpandVolume", err)
	_, err = t.NodeGetVolumeHealth(t.ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: id})
	add("NodeGetVolumeHealth", err)
	return calls
}

// forgivingCalls are those that succeed for what is gone already.
func (t *trial) forgivingCalls(id string) map[string]error {
	p := place{id: id, staging: t.path("staging"), target: t.path("target")}
	_, detach := t.ControllerUnpublishVolume(t.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id})
	return map[string]error{
		"DeleteVolume":              t.deleteVolume(id),
		"DeleteSnapshot":            t.deleteSnapshot(id),
		"ControllerUnpublishVolume": detach,
		"NodeUnstageVolume":         t.unstage(p),
		"NodeUnpublishVolume":       t.unpublish(p),
	}
}

func longIDs(t *trial) {
	known := t.create(t.request(tree)).VolumeId
	for _, id := range []string{strings.Repeat("i", longestText), known + "x", "v:local/../../etc", "0", "\x01x"} {
		for name, err := range t.callsWithID(id) {
			t.code(name+" of an unknown id", err, codes.NotFound)
		}
		for name, err := range t.forgivingCalls(id) {
			t.ok(name+" of an unknown id", err)
		}
	}
	for _, id := range []string{"", strings.Repeat("i", longestText+1)} {
		for name, err := range t.callsWithID(id) {
			t.code(fmt.Sprintf("%s of an id with %d bytes", name, len(id)), err, codes.InvalidArgument)
		}
		for name, err := range t.forgivingCalls(id) {
			t.code(fmt.Sprintf("%s of an id with %d bytes", name, len(id)), err, codes.InvalidArgument)
		}
	}
}

func longNodeIDs(t *trial) {
	request := &csi.ControllerPublishVolumeRequest{VolumeId: t.create(t.request(tree)).VolumeId,
		NodeId: strings.Repeat("n", 256), VolumeCapability: tree.capability()}
	_, err := t.ControllerPublishVolume(t.ctx, request)
	t.code("a node id of 256 bytes", err, codes.NotFound)
	request.NodeId += "n"
	_, err = t.ControllerPublishVolume(t.ctx, request)
	t.code("a node id of 257 bytes", err, codes.InvalidArgument)
}

// mapOf gives one of so many bytes, with keys that every driver passes over.
func mapOf(size int) map[string]string {
	const first, second = "csi.storage.k8s.io/first", "csi.storage.k8s.io/second"
	return map[string]string{first: strings.Repeat("x", 1000), second: strings.Repeat("y", size-1000-len(first)-len(second))}
}

func largeMaps(t *trial) {
	volume := t.create(t.request(tree)).VolumeId
	for size, wanted := range map[int]codes.Code{longestMap: codes.OK, longestMap + 1: codes.InvalidArgument} {
		for field, err := range t.callsWithMap(volume, mapOf(size)) {
			t.code(fmt.Sprintf("%s of %d bytes", field, size), err, wanted)
		}
	}
	request := t.request(tree)
	request.MutableParameters = map[string]string{"label": strings.Repeat("l", longestMap)}
	_, err := t.tryCreate(request)
	t.code("mutable_parameters of more than 4096 bytes", err, codes.InvalidArgument)
}

func (t *trial) callsWithMap(volume string, m map[string]string) map[string]error {
	calls := map[string]error{}
	p := place{id: volume, capability: tree.capability(), staging: t.directory("staging")}
	t.later(func() error { return t.unstage(p) })
	for field, fill := range map[string]func(*csi.CreateVolumeRequest){
		"parameters": func(r *csi.CreateVolumeRequest) { r.Parameters = m },
		"secrets":    func(r *csi.CreateVolumeRequest) { r.Secrets = m },
	} {
		request := t.request(tree)
		fill(request)
		_, calls[field] = t.tryCreate(request)
	}
	for field, fill := range map[string]func(*csi.NodeStageVolumeRequest){
		"volume_context":     func(r *csi.NodeStageVolumeRequest) { r.VolumeContext = m },
		"publish_context":    func(r *csi.NodeStageVolumeRequest) { r.PublishContext = m },
		"secrets of a stage": func(r *csi.NodeStageVolumeRequest) { r.Secrets = m },
	} {
		request := &csi.NodeStageVolumeRequest{VolumeId: volume, StagingTargetPath: p.staging, VolumeCapability: p.capability}
		fill(request)
		_, calls[field] = t.NodeStageVolume(t.ctx, request)
	}
	snapshot, err := t.CreateSnapshot(t.ctx, &csi.CreateSnapshotRequest{Name: t.unique("snapshot"), SourceVolumeId: volume, Parameters: m})
	calls["parameters of a snapshot"] = err
	if err == nil {
		t.later(func() error { return t.deleteSnapshot(snapshot.Snapshot.SnapshotId) })
	}
	return calls
}

func largeMountFlags(t *trial) {
	flags := make([]string, 0, longestMap/len("noatime")+1)
	for range longestMap / len("noatime") {
		flags = append(flags, "noatime")
	}
	volume := t.create(t.request(tree))
	t.release(t.use(volume, mounted("none", flags...)))
	p := place{id: volume.VolumeId, capability: mounted("none", append(flags, "nodev")...), staging: t.directory("staging")}
	t.code("mount_flags of more than 4096 bytes", t.tryStage(p), codes.InvalidArgument)
}

func strangePaths(t *trial) {
	p := t.stage(t.create(t.request(tree)), tree.capability())
	for _, path := range []string{"relative", "./relative", t.dir + "/../up", t.dir + "/..", "/" + strings.Repeat("p", 5000)} {
		strange := p
		strange.target = path
		t.code("NodePublishVolume at "+path, t.tryPublish(strange), codes.InvalidArgument)
		t.code("NodeUnpublishVolume at "+path, t.unpublish(strange), codes.InvalidArgument)
		strange.staging = path
		t.code("NodeStageVolume at "+path, t.tryStage(strange), codes.InvalidArgument)
	}
	for _, name := range []string{"with space", "with\nnewline", "with\ttab", "back\\slash", "\\040", "ж", "...", "a..b"} {
		odd := p
		odd.target = filepath.Join(t.directory("parent"), name)
		t.publish(odd)
		t.write(odd, 1)
		t.ok("NodePublishVolume again at "+name, t.tryPublish(odd))
		t.ok("NodeUnpublishVolume at "+name, t.unpublish(odd))
		_, err := os.Lstat(odd.target)
		t.that(os.IsNotExist(err), "%q is removed", odd.target)
	}
}

func longPaths(t *trial) {
	p := t.stage(t.create(t.request(tree)), tree.capability())
	deep := t.directory("deep")
	for len(deep) < 3800 {
		deep = filepath.Join(deep, strings.Repeat("d", 200))
	}
	t.ok("make directories", os.MkdirAll(deep, 0o755))
	p.target = filepath.Join(deep, "target")
	t.publish(p)
	t.write(p, 1)
	t.ok("NodeUnpublishVolume", t.unpublish(p))
}

func halfCapabilities(t *trial) {
	halves := map[string]*csi.VolumeCapability{
		"none at all":        nil,
		"no access type":     withMode(&csi.VolumeCapability{}, singleWriterNode),
		"no access mode":     {AccessType: block().AccessType},
		"unknown mode":       withMode(block(), csi.VolumeCapability_AccessMode_UNKNOWN),
		"a mode of tomorrow": withMode(block(), 99),
	}
	volume := t.create(t.request(device))
	for name, half := range halves {
		request := t.request(device)
		request.VolumeCapabilities = []*csi.VolumeCapability{block(), half}
		_, err := t.tryCreate(request)
		t.code("CreateVolume with "+name, err, codes.InvalidArgument)
		p := place{id: volume.VolumeId, capability: half, staging: t.path("staging"), target: t.path("target")}
		t.code("NodeStageVolume with "+name, t.tryStage(p), codes.InvalidArgument)
		t.code("NodePublishVolume with "+name, t.tryPublish(p), codes.InvalidArgument)
	}
}
