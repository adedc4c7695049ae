// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const defaultSize = 1 << 20

// handle makes ids with a slash in them, since CSI does not forbid that.
func (d *driver) handle(kind, name string) string {
	id := kind + "/" + name
	if missing := d.handleBytes - len(id); missing > 0 {
		id += strings.Repeat("x", missing)
	}
	return id
}

func (d *driver) find(id string) (*volume, error) {
	for _, v := range d.volumes {
		if v.VolumeId == id {
			return v, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no volume %q", id)
}

func (d *driver) used() int64 {
	sum := int64(0)
	for _, v := range d.volumes {
		sum += v.CapacityBytes
	}
	return sum
}

// isHere tells whether nothing in a term differs from this node's place.
func (d *driver) isHere(term *csi.Topology) bool {
	for key, value := range term.Segments {
		if d.topology[key] != value {
			return false
		}
	}
	return true
}

func (d *driver) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	size := max(request.GetCapacityRange().GetRequiredBytes(), defaultSize)
	for _, v := range d.volumes {
		if v.name == request.Name {
			return &csi.CreateVolumeResponse{Volume: v.Volume}, nil
		}
	}
	if terms := request.GetAccessibilityRequirements().GetRequisite(); len(terms) > 0 && !slices.ContainsFunc(terms, d.isHere) {
		return nil, status.Error(codes.ResourceExhausted, "not there")
	}
	if d.used()+size > d.capacity {
		return nil, status.Error(codes.ResourceExhausted, "no room")
	}
	v := &volume{name: request.Name, Volume: &csi.Volume{
		VolumeId:      d.handle("volumes", request.Name),
		CapacityBytes: size,
		VolumeContext: request.Parameters,
		ContentSource: request.VolumeContentSource,
	}}
	if len(d.topology) > 0 {
		v.AccessibleTopology = []*csi.Topology{{Segments: d.topology}}
	}
	if d.oldBytes != "" {
		if err := d.makeImage(v); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	d.volumes = append(d.volumes, v)
	return &csi.CreateVolumeResponse{Volume: v.Volume}, nil
}

func (d *driver) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if _, err := d.find(request.VolumeId); err != nil && d.strict {
		return nil, err
	}
	if d.oldBytes != "" {
		os.Remove(d.imageOf(request.VolumeId))
	}
	d.volumes = slices.DeleteFunc(d.volumes, func(v *volume) bool { return v.VolumeId == request.VolumeId })
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	v, err := d.find(request.VolumeId)
	if err != nil {
		return nil, err
	}
	if len(request.Parameters) > 0 && !maps.Equal(request.Parameters, v.VolumeContext) {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: "it was made with other parameters"}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: request.VolumeCapabilities, Parameters: request.Parameters}}, nil
}

func (d *driver) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	v, err := d.find(request.VolumeId)
	if err != nil {
		return nil, err
	}
	v.CapacityBytes = max(v.CapacityBytes, request.CapacityRange.GetRequiredBytes())
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.CapacityBytes}, nil
}

func (d *driver) ControllerPublishVolume(_ context.Context, request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	v, err := d.find(request.VolumeId)
	if err != nil {
		return nil, err
	}
	if request.NodeId != d.nodeID {
		return nil, status.Errorf(codes.NotFound, "no node %q", request.NodeId)
	}
	if !slices.Contains(v.nodeIDs, request.NodeId) {
		v.nodeIDs = append(v.nodeIDs, request.NodeId)
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": v.VolumeId}}, nil
}

func (d *driver) ControllerUnpublishVolume(_ context.Context, request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	v, err := d.find(request.VolumeId)
	if err != nil && d.strict {
		return nil, err
	}
	if err == nil {
		v.nodeIDs = slices.DeleteFunc(v.nodeIDs, func(id string) bool { return request.NodeId == "" || id == request.NodeId })
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ControllerGetVolume(_ context.Context, request *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	v, err := d.find(request.VolumeId)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: v.Volume,
		Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: v.nodeIDs}}, nil
}

func (d *driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: d.capacity - d.used()}, nil
}

// pageOf gives the part of a list that is asked for; a token is the number of the first entry.
func pageOf[E any](all []E, token string, most int32, limit int) ([]E, string, error) {
	start := 0
	if token != "" {
		number, err := strconv.Atoi(token)
		if err != nil || number < 0 || number > len(all) {
			return nil, "", status.Errorf(codes.Aborted, "no token %q", token)
		}
		start = number
	}
	end := len(all)
	for _, size := range []int{int(most), limit} {
		if size > 0 {
			end = min(end, start+size)
		}
	}
	if end < len(all) {
		return all[start:end], strconv.Itoa(end), nil
	}
	return all[start:], "", nil
}

func (d *driver) ListVolumes(_ context.Context, request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	page, next, err := pageOf(d.volumes, request.StartingToken, request.MaxEntries, d.page)
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range page {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: v.Volume,
			Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: v.nodeIDs}})
	}
	return response, err
}

func (d *driver) CreateSnapshot(_ context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if _, err := d.find(request.SourceVolumeId); err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: d.cut(request.Name, request.SourceVolumeId, "")}, nil
}

func (d *driver) cut(name, source, group string) *csi.Snapshot {
	id := d.handle("snapshots", name)
	for _, s := range d.snapshots {
		if s.SnapshotId == id {
			return s
		}
	}
	s := &csi.Snapshot{SnapshotId: id, SourceVolumeId: source, GroupSnapshotId: group, SizeBytes: defaultSize,
		CreationTime: timestamppb.Now(), ReadyToUse: true}
	d.snapshots = append(d.snapshots, s)
	return s
}

func (d *driver) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	d.snapshots = slices.DeleteFunc(d.snapshots, func(s *csi.Snapshot) bool { return s.SnapshotId == request.SnapshotId })
	return &csi.DeleteSnapshotResponse{}, nil
}

func (d *driver) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	fits := slices.DeleteFunc(slices.Clone(d.snapshots), func(s *csi.Snapshot) bool {
		return request.SnapshotId != "" && s.SnapshotId != request.SnapshotId ||
			request.SourceVolumeId != "" && s.SourceVolumeId != request.SourceVolumeId
	})
	page, next, err := pageOf(fits, request.StartingToken, request.MaxEntries, d.page)
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, s := range page {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s})
	}
	return response, err
}

func (d *driver) CreateVolumeGroupSnapshot(_ context.Context, request *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	id := d.handle("groups", request.Name)
	if d.groups[id] == nil {
		group := &csi.VolumeGroupSnapshot{GroupSnapshotId: id, CreationTime: timestamppb.Now(), ReadyToUse: true}
		for i, source := range request.SourceVolumeIds {
			if _, err := d.find(source); err != nil {
				return nil, err
			}
			group.Snapshots = append(group.Snapshots, d.cut(request.Name+strconv.Itoa(i), source, id))
		}
		d.groups[id] = group
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: d.groups[id]}, nil
}

func (d *driver) GetVolumeGroupSnapshot(_ context.Context, request *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if d.groups[request.GroupSnapshotId] == nil {
		return nil, status.Errorf(codes.NotFound, "no group %q", request.GroupSnapshotId)
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: d.groups[request.GroupSnapshotId]}, nil
}

func (d *driver) DeleteVolumeGroupSnapshot(_ context.Context, request *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	delete(d.groups, request.GroupSnapshotId)
	d.snapshots = slices.DeleteFunc(d.snapshots, func(s *csi.Snapshot) bool { return s.GroupSnapshotId == request.GroupSnapshotId })
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}
