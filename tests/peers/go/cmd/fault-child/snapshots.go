// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func tellSnapshot(p *snapshot) *csi.Snapshot {
	return &csi.Snapshot{SnapshotId: p.ID, SourceVolumeId: p.VolumeID, SizeBytes: p.Size, ReadyToUse: true,
		CreationTime: timestamppb.New(p.Taken), GroupSnapshotId: p.GroupID}
}

// take makes a snapshot, with the lock held.
func (d *driver) take(name, group string, of *volume) (*snapshot, error) {
	made := &snapshot{Name: name, VolumeID: of.ID, GroupID: group, Size: of.Size, Number: d.store.number(), Taken: time.Now()}
	made.ID = makeID(d.faults.now(), "snap", made.Number)
	err := copyTree(d.store.path("volume", of.Number), d.store.path("snapshot", made.Number))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	d.store.Snapshots = append(d.store.Snapshots, made)
	d.store.save()
	return made, nil
}

// drop removes a snapshot, with the lock held.
func (d *driver) drop(id string) {
	old := d.store.snapshot(id)
	if old == nil {
		return
	}
	os.RemoveAll(d.store.path("snapshot", old.Number))
	d.store.Snapshots = slices.DeleteFunc(d.store.Snapshots, func(p *snapshot) bool { return p == old })
	d.store.save()
}

func (c controller) CreateSnapshot(_ context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if request.GetName() == "" || request.GetSourceVolumeId() == "" {
		return nil, invalid("name and source_volume_id are needed")
	}
	c.store.lock.Lock()
	defer c.store.lock.Unlock()
	if old := c.store.snapshotNamed(request.GetName()); old != nil {
		if old.VolumeID != request.GetSourceVolumeId() {
			return nil, status.Errorf(codes.AlreadyExists, "%q is there, of another volume", old.Name)
		}
		return &csi.CreateSnapshotResponse{Snapshot: tellSnapshot(old)}, nil
	}
	of := c.store.volume(request.GetSourceVolumeId())
	if of == nil {
		return nil, missing("volume", request.GetSourceVolumeId())
	}
	made, err := c.take(request.GetName(), "", of)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: tellSnapshot(made)}, nil
}

func (c controller) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if request.GetSnapshotId() == "" {
		return nil, invalid("snapshot_id is needed")
	}
	c.store.lock.Lock()
	defer c.store.lock.Unlock()
	c.drop(request.GetSnapshotId())
	return &csi.DeleteSnapshotResponse{}, nil
}

func (c controller) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	c.store.lock.Lock()
	defer c.store.lock.Unlock()
	var wanted []*snapshot
	for _, p := range c.store.Snapshots {
		if (request.GetSnapshotId() == "" || p.ID == request.GetSnapshotId()) &&
			(request.GetSourceVolumeId() == "" || p.VolumeID == request.GetSourceVolumeId()) {
			wanted = append(wanted, p)
		}
	}
	page, next, err := cut(c.faults.now(), wanted, request.GetStartingToken(), request.GetMaxEntries())
	reply := &csi.ListSnapshotsResponse{NextToken: next}
	for _, p := range page {
		reply.Entries = append(reply.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: tellSnapshot(p)})
	}
	return reply, err
}

// ---- groups ----

type groups struct {
	csi.UnimplementedGroupControllerServer
	*driver
}

func (g groups) tell(of *group) *csi.VolumeGroupSnapshot {
	told := &csi.VolumeGroupSnapshot{GroupSnapshotId: of.ID, ReadyToUse: true, CreationTime: timestamppb.New(of.Taken)}
	for _, id := range of.Snapshots {
		if p := g.store.snapshot(id); p != nil {
			told.Snapshots = append(told.Snapshots, tellSnapshot(p))
		}
	}
	return told
}

func (g groups) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	kind := csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT
	return &csi.GroupControllerGetCapabilitiesResponse{
		Capabilities: []*csi.GroupControllerServiceCapability{{
			Type: &csi.GroupControllerServiceCapability_Rpc{
				Rpc: &csi.GroupControllerServiceCapability_RPC{Type: kind}}}},
	}, nil
}

func (g groups) CreateVolumeGroupSnapshot(_ context.Context, request *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	if request.GetName() == "" || len(request.GetSourceVolumeIds()) == 0 {
		return nil, invalid("name and source_volume_ids are needed")
	}
	g.store.lock.Lock()
	defer g.store.lock.Unlock()
	if old := g.store.groupNamed(request.GetName()); old != nil {
		return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: g.tell(old)}, nil
	}
	var of []*volume
	for _, id := range request.GetSourceVolumeIds() {
		found := g.store.volume(id)
		if found == nil {
			return nil, missing("volume", id)
		}
		of = append(of, found)
	}
	made := &group{Name: request.GetName(), Taken: time.Now()}
	made.ID = makeID(g.faults.now(), "group", g.store.number())
	for _, v := range of {
		p, err := g.take(request.GetName()+"-"+v.ID, made.ID, v)
		if err != nil {
			return nil, err
		}
		made.Snapshots = append(made.Snapshots, p.ID)
	}
	g.store.Groups = append(g.store.Groups, made)
	g.store.save()
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: g.tell(made)}, nil
}

func (g groups) DeleteVolumeGroupSnapshot(_ context.Context, request *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if request.GetGroupSnapshotId() == "" {
		return nil, invalid("group_snapshot_id is needed")
	}
	g.store.lock.Lock()
	defer g.store.lock.Unlock()
	if old := g.store.group(request.GetGroupSnapshotId()); old != nil {
		for _, id := range old.Snapshots {
			g.drop(id)
		}
		g.store.Groups = slices.DeleteFunc(g.store.Groups, func(one *group) bool { return one == old })
		g.store.save()
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}

func (g groups) GetVolumeGroupSnapshot(_ context.Context, request *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if request.GetGroupSnapshotId() == "" {
		return nil, invalid("group_snapshot_id is needed")
	}
	g.store.lock.Lock()
	defer g.store.lock.Unlock()
	found := g.store.group(request.GetGroupSnapshotId())
	if found == nil {
		return nil, missing("group snapshot", request.GetGroupSnapshotId())
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: g.tell(found)}, nil
}
