// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// All capabilities that the driver can have, with the methods that need them.
var controllerMethods = map[csi.ControllerServiceCapability_RPC_Type][]string{
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME:         {"CreateVolume", "DeleteVolume"},
	csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME:     {"ControllerPublishVolume", "ControllerUnpublishVolume"},
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES:                 {"ListVolumes"},
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES: nil,
	csi.ControllerServiceCapability_RPC_GET_VOLUME:                   {"ControllerGetVolume"},
	csi.ControllerServiceCapability_RPC_GET_CAPACITY:                 {"GetCapacity"},
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT:       {"CreateSnapshot", "DeleteSnapshot"},
	csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS:               {"ListSnapshots"},
	csi.ControllerServiceCapability_RPC_CLONE_VOLUME:                 nil,
	csi.ControllerServiceCapability_RPC_EXPAND_VOLUME:                {"ControllerExpandVolume"},
}

var nodeMethods = map[csi.NodeServiceCapability_RPC_Type][]string{
	csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME: {"NodeStageVolume", "NodeUnstageVolume"},
	csi.NodeServiceCapability_RPC_GET_VOLUME_STATS:     {"NodeGetVolumeStats"},
}

const groups = csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT

func (d *driver) has(capability string) bool {
	return !slices.Contains(strings.Split(d.without, ","), capability)
}

func (d *driver) lacks(method string) bool {
	for capability, methods := range controllerMethods {
		if slices.Contains(methods, method) {
			return !d.has(capability.String())
		}
	}
	for capability, methods := range nodeMethods {
		if slices.Contains(methods, method) {
			return !d.has(capability.String())
		}
	}
	return strings.HasSuffix(method, "VolumeGroupSnapshot") && !d.has(groups.String())
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	if len(d.topology) > 0 {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	if d.has(groups.String()) {
		services = append(services, csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE)
	}
	response := &csi.GetPluginCapabilitiesResponse{}
	for _, service := range services {
		response.Capabilities = append(response.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}}})
	}
	return response, nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for capability := range controllerMethods {
		if d.has(capability.String()) {
			response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
				Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}}})
		}
	}
	return response, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for capability := range nodeMethods {
		if d.has(capability.String()) {
			response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
				Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: capability}}})
		}
	}
	return response, nil
}

func (d *driver) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	response := &csi.GroupControllerGetCapabilitiesResponse{}
	if d.has(groups.String()) {
		response.Capabilities = append(response.Capabilities, &csi.GroupControllerServiceCapability{
			Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{Type: groups}}})
	}
	return response, nil
}
