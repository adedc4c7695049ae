// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	pageSize = 50
	// What a crash has left of the data may be swept away, and what was being copied may be copied again, behind the start.
	sweepLimit = 5 * time.Second
)

// audit compares everything that is there with the model. No client works.
func (s *storm) audit() error {
	for _, v := range s.volumes {
		v.expectCopyOfNow()
	}
	for _, i := range s.snapshots {
		i.expectCopyOfNow()
	}
	volumes, snapshots, err := s.waitForData()
	if err != nil {
		return err
	}
	return errors.Join(s.auditVolumes(volumes), s.auditSnapshots(snapshots), s.auditDeleted(), s.auditMounts(),
		s.auditLoops(), s.auditPublished())
}

func (i *item) expectCopyOfNow() {
	if i.unanswered != nil && i.unanswered.begunAgain != nil {
		i.unanswered.begunAgain()
	}
}

// ---- what the daemon says ----

func (s *storm) listVolumes() (map[string]int64, error) {
	found := map[string]int64{}
	for token := ""; ; {
		answer, err := call(s.daemon.session, s.daemon.session.controller.ListVolumes,
			&csi.ListVolumesRequest{MaxEntries: pageSize, StartingToken: token})
		if err != nil {
			return nil, fmt.Errorf("ListVolumes: %w", err)
		}
		for _, entry := range answer.GetEntries() {
			found[entry.GetVolume().GetVolumeId()] = entry.GetVolume().GetCapacityBytes()
		}
		if token = answer.GetNextToken(); token == "" {
			return found, nil
		}
	}
}

func (s *storm) listSnapshots() (map[string]string, error) {
	found := map[string]string{}
	for token := ""; ; {
		answer, err := call(s.daemon.session, s.daemon.session.controller.ListSnapshots,
			&csi.ListSnapshotsRequest{MaxEntries: pageSize, StartingToken: token})
		if err != nil {
			return nil, fmt.Errorf("ListSnapshots: %w", err)
		}
		for _, entry := range answer.GetEntries() {
			found[entry.GetSnapshot().GetSnapshotId()] = entry.GetSnapshot().GetSourceVolumeId()
		}
		if token = answer.GetNextToken(); token == "" {
			return found, nil
		}
	}
}

// unexpected tells which ids nobody answered for: there may be as many as creations that were not answered.
func (s *storm) unexpected(what string, found []string, known map[string]bool, mayBe int) error {
	var strange []string
	for _, id := range found {
		if s.deleted[id] {
			return fmt.Errorf("the %s %s was answered as deleted and is back", what, id)
		}
		if !known[id] {
			strange = append(strange, id)
		}
	}
	if len(strange) > mayBe {
		return fmt.Errorf("%d %ss that nobody made, and only %d were asked for without an answer: %v", len(strange),
			what, mayBe, strange)
	}
	return nil
}

func (s *storm) auditVolumes(found map[string]int64) error {
	known, mayBe := map[string]bool{}, 0
	for _, v := range s.volumes {
		if v.id == "" {
			if v.unanswered != nil {
				mayBe++
			}
			continue
		}
		known[v.id] = true
		size, there := found[v.id]
		isLeaving := v.unanswered != nil && v.unanswered.what == "delete"
		isGrowing := v.growsTo > 0 && size > v.size && size <= v.growsTo
		if !there && !isLeaving {
			return v.fault("it is not listed any more")
		}
		if there && size != v.size && !isGrowing {
			return v.fault("it has %d bytes instead of %d", size, v.size)
		}
	}
	return s.unexpected("volume", slices.Collect(maps.Keys(found)), known, mayBe)
}

func (s *storm) auditSnapshots(found map[string]string) error {
	known, mayBe := map[string]bool{}, 0
	for _, i := range s.snapshots {
		if i.id == "" {
			if i.unanswered != nil {
				mayBe++
			}
			continue
		}
		known[i.id] = true
		source, there := found[i.id]
		if !there && i.unanswered == nil {
			return i.fault("it is not listed any more")
		}
		if there && source != i.source {
			return i.fault("its source is %s instead of %s", source, i.source)
		}
	}
	return s.unexpected("snapshot", slices.Collect(maps.Keys(found)), known, mayBe)
}

// auditDeleted asks for some of those that were deleted.
func (s *storm) auditDeleted() error {
	asked := 0
	for id := range s.deleted {
		var err error
		if id[0] == 'v' {
			_, err = call(s.daemon.session, s.daemon.session.controller.ControllerGetVolume,
				&csi.ControllerGetVolumeRequest{VolumeId: id})
		} else {
			_, err = call(s.daemon.session, s.daemon.session.controller.GetSnapshot, &csi.GetSnapshotRequest{SnapshotId: id})
		}
		if status.Code(err) != codes.NotFound {
			return fmt.Errorf("%s was answered as deleted, and asked for it gives: %v", id, err)
		}
		if asked++; asked == 10 {
			break
		}
	}
	return nil
}

// ---- what is on disk ----

// waitForData lists until what the daemon lists is what the back end holds.
func (s *storm) waitForData() (map[string]int64, map[string]string, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		volumes, err := s.listVolumes()
		if err != nil {
			return nil, nil, err
		}
		snapshots, err := s.listSnapshots()
		if err != nil {
			return nil, nil, err
		}
		mismatch, err := s.compareData(volumes, snapshots)
		if err != nil {
			return nil, nil, err
		}
		if mismatch == "" {
			return volumes, snapshots, nil
		}
		if time.Since(began) > sweepLimit*time.Duration(s.options.slower) {
			return nil, nil, fmt.Errorf("the data of the back end does not fit: %s", mismatch)
		}
	}
}

func (s *storm) compareData(volumes map[string]int64, snapshots map[string]string) (string, error) {
	wanted := map[string]bool{}
	for id := range volumes {
		wanted["volume/"+handleOf(id)] = true
	}
	for id := range snapshots {
		wanted["snapshot/"+handleOf(id)] = true
	}
	found, err := s.listData()
	if err != nil {
		return "", err
	}
	subvolumes, err := s.countSubvolumes()
	if err != nil {
		return "", err
	}
	if subvolumes >= 0 && subvolumes != len(wanted) {
		return fmt.Sprintf("%d subvolumes for %d volumes and snapshots: %s", subvolumes, len(wanted),
			difference(found, wanted)), nil
	}
	return difference(found, wanted), nil
}

func (s *storm) dataDirectory() string {
	if s.options.backend == "btrfs" {
		return filepath.Join(s.daemon.data(), "pool")
	}
	return s.daemon.data()
}

func (s *storm) listData() (map[string]bool, error) {
	found := map[string]bool{}
	for directory, prefix := range map[string]string{"volume-trees": "volume/", "volume-images": "volume/",
		"snapshot-trees": "snapshot/", "snapshot-images": "snapshot/", "making": "making/"} {
		entries, err := os.ReadDir(filepath.Join(s.dataDirectory(), directory))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			found[prefix+entry.Name()] = true
		}
	}
	return found, nil
}

// countSubvolumes: -1 where there are none by nature.
func (s *storm) countSubvolumes() (int, error) {
	if s.options.backend != "btrfs" {
		return -1, nil
	}
	list, err := exec.Command("btrfs", "subvolume", "list", s.dataDirectory()).Output()
	if err != nil {
		return 0, fmt.Errorf("btrfs subvolume list: %w", err)
	}
	return strings.Count(string(list), "\n"), nil
}

func difference(found, wanted map[string]bool) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !wanted[name] {
			parts = append(parts, name+" is too much")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !found[name] {
			parts = append(parts, name+" is missing")
		}
	}
	return strings.Join(parts, ", ")
}

// ---- what the kernel says ----

// auditMounts: each path once, and only where a volume is staged or published.
func (s *storm) auditMounts() error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	found := map[string]int{}
	for line := range strings.Lines(string(table)) {
		point := strings.Fields(line)[4]
		if strings.HasPrefix(point, s.options.work+"/staging/") || strings.HasPrefix(point, s.options.work+"/targets/") {
			found[point]++
		}
	}
	for _, v := range s.volumes {
		if v.unanswered != nil {
			if found[s.stagingPath(v)] > 1 || found[s.targetPath(v)] > 1 {
				return v.fault("it is mounted twice at one place")
			}
			delete(found, s.stagingPath(v))
			delete(found, s.targetPath(v))
			continue
		}
		if err := takeMount(v, found, s.stagingPath(v), v.state >= staged && v.kind != block); err != nil {
			return err
		}
		if err := takeMount(v, found, s.targetPath(v), v.state == published); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("mounts that nobody asked for: %v", found)
	}
	return nil
}

func takeMount(v *volume, found map[string]int, path string, wanted bool) error {
	count := found[path]
	delete(found, path)
	if wanted && count != 1 || !wanted && count != 0 {
		return v.fault("there are %d mounts at %s", count, path)
	}
	return nil
}

// auditLoops: the pool's device, one for each image in use, one more where raw blocks are read only.
func (s *storm) auditLoops() error {
	devices, err := s.listLoops()
	if err != nil {
		return err
	}
	for _, v := range s.volumes {
		if v.id == "" || v.kind == tree {
			continue
		}
		file := filepath.Join(s.dataDirectory(), "volume-images", handleOf(v.id), "disk/image")
		device, count := devices[file], 0
		if device != "" {
			count++
			delete(devices, file)
			if devices[device] != "" {
				count++
				delete(devices, device)
			}
		}
		wanted := 0
		if v.state >= staged {
			wanted++
		}
		if v.kind == block && v.state == published && v.readOnly {
			wanted++
		}
		if count != wanted && v.unanswered == nil {
			return v.fault("it has %d loop devices instead of %d", count, wanted)
		}
	}
	if s.options.backend == "btrfs" {
		delete(devices, filepath.Join(s.daemon.data(), "pool.img"))
	}
	if len(devices) > 0 {
		return fmt.Errorf("loop devices that nobody uses: %v", devices)
	}
	return nil
}

// listLoops tells the device of each file below the data directory, and of each such device.
func (s *storm) listLoops() (map[string]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	all, ours := map[string]string{}, map[string]string{}
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err != nil {
			continue // gone meanwhile
		}
		all[strings.TrimSpace(string(backing))] = "/dev/" + strings.Split(file, "/")[3]
	}
	for backing, device := range all {
		if strings.HasPrefix(backing, s.daemon.data()+"/") {
			ours[backing] = device
			if upper, there := all[device]; there {
				ours[device] = upper
			}
		}
	}
	return ours, nil
}

// ---- contents ----

// auditPublished reads what some of the published volumes hold.
func (s *storm) auditPublished() error {
	for range 10 {
		v := s.volumes[s.random.IntN(len(s.volumes))]
		if v.state != published || v.unanswered != nil {
			continue
		}
		if err := s.verify(v); err != nil {
			return err
		}
	}
	return nil
}
