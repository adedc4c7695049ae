// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

var allPlugin = []string{"CONTROLLER_SERVICE", "GROUP_CONTROLLER_SERVICE", "SNAPSHOT_METADATA_SERVICE", "ONLINE"}

var allController = []string{"CREATE_DELETE_VOLUME", "PUBLISH_UNPUBLISH_VOLUME", "LIST_VOLUMES", "GET_CAPACITY",
	"CREATE_DELETE_SNAPSHOT", "LIST_SNAPSHOTS", "CLONE_VOLUME", "EXPAND_VOLUME", "LIST_VOLUMES_PUBLISHED_NODES",
	"GET_VOLUME", "MODIFY_VOLUME"}

var allNode = []string{"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME"}

// number finds a name that a test has asked for; one that there is not ends the process.
func number(values map[string]int32, name string) int32 {
	value, found := values[name]
	if !found {
		fmt.Fprintf(os.Stderr, "there is no capability %s\n", name)
		os.Exit(4)
	}
	return value
}

func choose(wanted, all []string) []string {
	if wanted == nil {
		return all
	}
	return wanted
}

func pluginCapabilities(current fault) []*csi.PluginCapability {
	var list []*csi.PluginCapability
	for _, name := range choose(current.Plugin, allPlugin) {
		if kind, is := csi.PluginCapability_VolumeExpansion_Type_value[name]; is && kind != 0 {
			list = append(list, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
				VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
					Type: csi.PluginCapability_VolumeExpansion_Type(kind)}}})
			continue
		}
		kind := number(csi.PluginCapability_Service_Type_value, name)
		list = append(list, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_Type(kind)}}})
	}
	return list
}

func controllerCapabilities(current fault) []*csi.ControllerServiceCapability {
	var list []*csi.ControllerServiceCapability
	for _, name := range choose(current.Controller, allController) {
		kind := number(csi.ControllerServiceCapability_RPC_Type_value, name)
		list = append(list, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_Type(kind)}}})
	}
	return list
}

func nodeCapabilities(current fault) []*csi.NodeServiceCapability {
	var list []*csi.NodeServiceCapability
	for _, name := range choose(current.Node, allNode) {
		kind := number(csi.NodeServiceCapability_RPC_Type_value, name)
		list = append(list, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_Type(kind)}}})
	}
	return list
}
