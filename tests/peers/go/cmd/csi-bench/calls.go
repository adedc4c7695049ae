// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	callTime    = 5 * time.Minute // csi-driver-host-path packs a snapshot with tar before it answers
	volumeBytes = 2 << 30
)

// client is one caller with a connection of its own.
type client struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
	number     int
	parameters map[string]string // of volumes that it makes
	topology   *csi.TopologyRequirement
}

type bench struct {
	settings
	clients []*client
	times   times
	id      string // of the volume that open made
	listed  int
}

func newBench(address string, s settings) (*bench, error) {
	b := &bench{settings: s, times: times{}}
	for i := range s.clients {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		client := &client{csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn), i, nil, nil}
		if s.connection != "" {
			client.parameters = map[string]string{"connection": s.connection}
		}
		if s.node != "" {
			segments := map[string]string{"topology.skycap.dev/node": s.node}
			client.topology = &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: segments}}}
		}
		if err := client.getInfo(); err != nil { // so that no figure has the connecting in it
			return nil, err
		}
		b.clients = append(b.clients, client)
	}
	return b, nil
}

type result struct {
	Seconds float64            `json:"seconds"`
	Times   map[string]figures `json:"times,omitempty"`
	Volume  string             `json:"volume,omitempty"`
	Listed  int                `json:"listed,omitempty"`
}

func (b *bench) result(took time.Duration) result {
	r := result{took.Seconds(), map[string]figures{}, b.id, b.listed}
	for kind, values := range b.times {
		r.Times[kind] = summarise(values)
	}
	return r
}

// ---- single calls ----

func withTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), callTime)
}

func (c *client) getInfo() error {
	ctx, cancel := withTime()
	defer cancel()
	_, err := c.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	return err
}

func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func (c *client) create(name string, source *csi.VolumeContentSource) (string, error) {
	ctx, cancel := withTime()
	defer cancel()
	reply, err := c.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name:                name,
		CapacityRange:       &csi.CapacityRange{RequiredBytes: volumeBytes},
		VolumeCapabilities:  []*csi.VolumeCapability{capability()},
		Parameters:          c.parameters,
		VolumeContentSource: source,

		AccessibilityRequirements: c.topology,
	})
	if err != nil {
		return "", fmt.Errorf("create %s: %w", name, err)
	}
	if reply.Volume.GetVolumeId() == "" || reply.Volume.CapacityBytes < volumeBytes {
		return "", fmt.Errorf("create %s: a wrong answer: %v", name, reply)
	}
	return reply.Volume.VolumeId, nil
}

func (c *client) remove(id string) error {
	ctx, cancel := withTime()
	defer cancel()
	_, err := c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

func (c *client) validateOne(id string) error {
	ctx, cancel := withTime()
	defer cancel()
	reply, err := c.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: id, VolumeCapabilities: []*csi.VolumeCapability{capability()}})
	if err == nil && reply.Confirmed == nil {
		err = fmt.Errorf("validate %s: a wrong answer: %v", id, reply)
	}
	return err
}

func (c *client) getOne(id string) error {
	ctx, cancel := withTime()
	defer cancel()
	reply, err := c.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
	if err == nil && reply.Volume.GetVolumeId() != id {
		err = fmt.Errorf("get %s: a wrong answer: %v", id, reply)
	}
	return err
}

func (c *client) snapshot(name, volume string) (string, error) {
	ctx, cancel := withTime()
	defer cancel()
	reply, err := c.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
	if err != nil {
		return "", err
	}
	if !reply.Snapshot.GetReadyToUse() {
		return "", fmt.Errorf("the snapshot is not ready: %v", reply)
	}
	return reply.Snapshot.SnapshotId, nil
}

func (c *client) removeSnapshot(id string) error {
	ctx, cancel := withTime()
	defer cancel()
	_, err := c.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	return err
}

func (b *bench) stagingPath() string { return filepath.Join(b.directory, "staging") }
func (b *bench) targetPath() string  { return filepath.Join(b.directory, "target") }

func (b *bench) stage(c *client, id string) error {
	ctx, cancel := withTime()
	defer cancel()
	if err := os.MkdirAll(b.stagingPath(), 0o750); err != nil { // the orchestrator's work, by the specification
		return err
	}
	_, err := c.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: b.stagingPath(), VolumeCapability: capability()})
	return err
}

func (b *bench) unstage(c *client, id string) error {
	ctx, cancel := withTime()
	defer cancel()
	_, err := c.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: b.stagingPath()})
	return err
}

func (b *bench) publishAt(c *client, id string) error {
	ctx, cancel := withTime()
	defer cancel()
	_, err := c.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: b.stagingPath(), TargetPath: b.targetPath(), VolumeCapability: capability()})
	return err
}

func (b *bench) unpublishAt(c *client, id string) error {
	ctx, cancel := withTime()
	defer cancel()
	_, err := c.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: b.targetPath()})
	return err
}
