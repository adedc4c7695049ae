// SPDX-License-Identifier: Apache-2.0

// Command identity-server serves csi.v1.Identity with constant answers: the grpc-go side of the benchmark.
package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"skycap.test/peers/internal/grpcserver"
)

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{
		Name:          "csi.skycap.dev",
		VendorVersion: "0.1.0",
		Manifest:      map[string]string{"commit": "0123456789ab"},
	}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{
		Capabilities: []*csi.PluginCapability{
			service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
			service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		},
	}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func service(kind csi.PluginCapability_Service_Type) *csi.PluginCapability {
	return &csi.PluginCapability{
		Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: kind},
		},
	}
}

func main() {
	grpcserver.Main(func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, identity{})
	})
}
