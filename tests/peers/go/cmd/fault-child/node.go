// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type node struct {
	csi.UnimplementedNodeServer
	*driver
}

// ---- targets ----

func (n node) show(v *volume, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if !n.options.mounts || holds(target, n.store.path("volume", v.Number)) {
		return nil
	}
	if err := syscall.Mount(n.store.path("volume", v.Number), target, "", syscall.MS_BIND, ""); err != nil {
		return status.Errorf(codes.Internal, "mount %s: %v", target, err)
	}
	return nil
}

// holds tells whether a target shows the data: it is the same directory.
func holds(target, data string) bool {
	one, err := os.Stat(target)
	other, errOther := os.Stat(data)
	return err == nil && errOther == nil && os.SameFile(one, other)
}

func (n node) hide(target string) error {
	for syscall.Unmount(target, 0) == nil {
	}
	err := os.Remove(target)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// ---- staging and publishing ----

func (n node) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if request.GetStagingTargetPath() == "" || request.GetVolumeCapability() == nil {
		return nil, invalid("staging_target_path and volume_capability are needed")
	}
	err := n.with(request.GetVolumeId(), func(*volume) error {
		return os.MkdirAll(request.GetStagingTargetPath(), 0o755)
	})
	return &csi.NodeStageVolumeResponse{}, err
}

func (n node) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if request.GetVolumeId() == "" || request.GetStagingTargetPath() == "" {
		return nil, invalid("volume_id and staging_target_path are needed")
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (n node) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if request.GetTargetPath() == "" || request.GetVolumeCapability() == nil {
		return nil, invalid("target_path and volume_capability are needed")
	}
	err := n.with(request.GetVolumeId(), func(v *volume) error {
		return n.show(v, request.GetTargetPath())
	})
	return &csi.NodePublishVolumeResponse{}, err
}

func (n node) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if request.GetTargetPath() == "" {
		return nil, invalid("target_path is needed")
	}
	err := n.with(request.GetVolumeId(), func(*volume) error {
		return n.hide(request.GetTargetPath())
	})
	return &csi.NodeUnpublishVolumeResponse{}, err
}

// ---- the rest ----

func (n node) NodeGetVolumeStats(_ context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if request.GetVolumePath() == "" {
		return nil, invalid("volume_path is needed")
	}
	reply := &csi.NodeGetVolumeStatsResponse{}
	err := n.with(request.GetVolumeId(), func(v *volume) error {
		if _, err := os.Stat(request.GetVolumePath()); err != nil {
			return missing("volume at", request.GetVolumePath())
		}
		reply.Usage = []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Size, Available: v.Size}}
		return nil
	})
	return reply, err
}

func (n node) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if request.GetVolumePath() == "" {
		return nil, invalid("volume_path is needed")
	}
	reply := &csi.NodeExpandVolumeResponse{}
	err := n.with(request.GetVolumeId(), func(v *volume) error {
		if _, err := os.Stat(request.GetVolumePath()); err != nil {
			return missing("volume at", request.GetVolumePath())
		}
		reply.CapacityBytes = v.Size
		return nil
	})
	return reply, err
}

func (n node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: nodeCapabilities(n.faults.now())}, nil
}

func (n node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.options.nodeID, MaxVolumesPerNode: 100,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{n.options.name + "/node": n.options.nodeID}}}, nil
}
