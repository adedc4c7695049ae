// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	defaultSize = int64(1 << 30)
	largestSize = int64(1 << 40)
)

type controller struct {
	csi.UnimplementedControllerServer
	*driver
}

func invalid(what string) error {
	return status.Error(codes.InvalidArgument, what)
}

func missing(what, id string) error {
	return status.Errorf(codes.NotFound, "there is no %s %q", what, id)
}

// ---- volumes ----

func (d *driver) tell(v *volume) *csi.Volume {
	told := &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Size, VolumeContext: map[string]string{"mock": d.options.name}}
	if v.Source != "" {
		told.ContentSource = source(v)
	}
	if size := d.faults.now().HugeBytes; size > 0 {
		told.VolumeContext["ballast"] = strings.Repeat("x", size)
	}
	return told
}

func source(v *volume) *csi.VolumeContentSource {
	if v.FromClone {
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Source}}}
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Source}}}
}

func chooseSize(wanted *csi.CapacityRange) (int64, error) {
	least, most := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	size := max(least, defaultSize)
	if most > 0 && least == 0 {
		size = min(size, most)
	}
	if size > largestSize || (most > 0 && size > most) {
		return 0, status.Error(codes.OutOfRange, "no such size can be had")
	}
	return size, nil
}

// checkMutable knows of one, which changes nothing.
func checkMutable(parameters map[string]string) error {
	for key := range parameters {
		if key != "label" {
			return invalid("there is no mutable parameter " + key)
		}
	}
	return nil
}

// findSource gives the id and the data of what a volume is made from; empty texts where it starts empty.
func (c controller) findSource(wanted *csi.VolumeContentSource) (id, path string, isClone bool, err error) {
	if from := wanted.GetSnapshot(); from != nil {
		found := c.store.snapshot(from.GetSnapshotId())
		if found == nil {
			return "", "", false, missing("snapshot", from.GetSnapshotId())
		}
		return found.ID, c.store.path("snapshot", found.Number), false, nil
	}
	if from := wanted.GetVolume(); from != nil {
		found := c.store.volume(from.GetVolumeId())
		if found == nil {
			return "", "", false, missing("volume", from.GetVolumeId())
		}
		return found.ID, c.store.path("volume", found.Number), true, nil
	}
	return "", "", false, nil
}

func (c controller) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if request.GetName() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, invalid("name and volume_capabilities are needed")
	}
	size, err := chooseSize(request.GetCapacityRange())
	if err == nil {
		err = checkMutable(request.GetMutableParameters())
	}
	if err != nil {
		return nil, err
	}
	c.store.lock.Lock()
	defer c.store.lock.Unlock()
	id, path, isClone, err := c.findSource(request.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	if old := c.store.volumeNamed(request.GetName()); old != nil {
		return c.createAgain(old, request, id)
	}
	made := &volume{Name: request.GetName(), Number: c.store.number(), Size: size, Source: id, FromClone: isClone}
	made.ID = makeID(c.faults.now(), "vol", made.Number)
	if err := copyTree(path, c.store.path("volume", made.Number)); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	c.store.Volumes = append(c.store.Volumes, made)
	c.store.save()
	return &csi.CreateVolumeResponse{Volume: c.tell(made)}, nil
}

func (c controller) createAgain(old *volume, request *csi.CreateVolumeRequest, source string) (*csi.CreateVolumeResponse, error) {
	least, most := request.GetCapacityRange().GetRequiredBytes(), request.GetCapacityRange().GetLimitBytes()
	if old.Size < least || (most > 0 && old.Size > most) || old.Source != source {
		return nil, status.Errorf(codes.AlreadyExists, "%q is there, and another one", old.Name)
	}
	return &csi.CreateVolumeResponse{Volume: c.tell(old)}, nil
}

func (c controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, invalid("volume_id is needed")
	}
	c.store.lock.Lock()
	defer c.store.lock.Unlock()
	if old := c.store.volume(request.GetVolumeId()); old != nil {
		os.RemoveAll(c.store.path("volume", old.Number))
		c.store.Volumes = slices.DeleteFunc(c.store.Volumes, func(v *volume) bool { return v == old })
		c.store.save()
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ---- one volume ----

// with runs work on the volume, with the lock held.
func (d *driver) with(id string, work func(*volume) error) error {
	if id == "" {
		return invalid("volume_id is needed")
	}
	d.store.lock.Lock()
	defer d.store.lock.Unlock()
	found := d.store.volume(id)
	if found == nil {
		return missing("volume", id)
	}
	err := work(found)
	d.store.save()
	return err
}

func (c controller) ControllerPublishVolume(_ context.Context, request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if request.GetNodeId() == "" || request.GetVolumeCapability() == nil {
		return nil, invalid("node_id and volume_capability are needed")
	}
	err := c.with(request.GetVolumeId(), func(v *volume) error {
		if request.GetNodeId() != c.options.nodeID {
			return missing("node", request.GetNodeId())
		}
		if !slices.Contains(v.Nodes, request.GetNodeId()) {
			v.Nodes = append(v.Nodes, request.GetNodeId())
		}
		return nil
	})
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"attached": "yes"}}, err
}

func (c controller) ControllerUnpublishVolume(_ context.Context, request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	err := c.with(request.GetVolumeId(), func(v *volume) error {
		v.Nodes = slices.DeleteFunc(v.Nodes, func(node string) bool {
			return request.GetNodeId() == "" || node == request.GetNodeId()
		})
		return nil
	})
	if status.Code(err) == codes.NotFound {
		err = nil
	}
	return &csi.ControllerUnpublishVolumeResponse{}, err
}

func (c controller) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if len(request.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume_capabilities are needed")
	}
	err := c.with(request.GetVolumeId(), func(*volume) error { return nil })
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
			VolumeContext:      request.GetVolumeContext(),
			VolumeCapabilities: request.GetVolumeCapabilities(),
			Parameters:         request.GetParameters(),
		},
	}, err
}

func (c controller) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if request.GetCapacityRange() == nil {
		return nil, invalid("capacity_range is needed")
	}
	reply := &csi.ControllerExpandVolumeResponse{NodeExpansionRequired: true}
	err := c.with(request.GetVolumeId(), func(v *volume) error {
		size, err := chooseSize(request.GetCapacityRange())
		v.Size = max(v.Size, size)
		reply.CapacityBytes = v.Size
		return err
	})
	return reply, err
}

func (c controller) ControllerGetVolume(_ context.Context, request *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	reply := &csi.ControllerGetVolumeResponse{}
	err := c.with(request.GetVolumeId(), func(v *volume) error {
		reply.Volume = c.tell(v)
		reply.Status = &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: v.Nodes}
		return nil
	})
	return reply, err
}

func (c controller) ControllerModifyVolume(_ context.Context, request *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	err := c.with(request.GetVolumeId(), func(*volume) error {
		return checkMutable(request.GetMutableParameters())
	})
	return &csi.ControllerModifyVolumeResponse{}, err
}

// ---- all of them ----

func (c controller) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: largestSize}, nil
}

func (c controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: controllerCapabilities(c.faults.now())}, nil
}

func (c controller) ListVolumes(_ context.Context, request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	c.store.lock.Lock()
	defer c.store.lock.Unlock()
	page, next, err := cut(c.faults.now(), c.store.Volumes, request.GetStartingToken(), request.GetMaxEntries())
	reply := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range page {
		reply.Entries = append(reply.Entries, &csi.ListVolumesResponse_Entry{
			Volume: c.tell(v),
			Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: v.Nodes},
		})
	}
	return reply, err
}
