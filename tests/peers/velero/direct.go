// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/generated"
	actions "github.com/vmware-tanzu/velero/pkg/plugin/generated/backupitemaction/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// A plugin without Velero's own code on top: the connection is all of it.
type connection struct {
	plugin.NetRPCUnsupportedPlugin
}

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("not a server")
}

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// open starts the plugin as go-plugin does, with certificates of both sides.
func open(mutual bool) (*plugin.Client, *grpc.ClientConn, error) {
	programs, err := filepath.Glob(filepath.Join(os.Getenv("VELERO_PLUGIN_DIR"), "*"))
	if err != nil || len(programs) != 1 {
		return nil, nil, fmt.Errorf("%d plugins, %w", len(programs), err)
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  framework.Handshake(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Plugins:          map[string]plugin.Plugin{"connection": connection{}},
		Cmd:              exec.Command(programs[0]),
		AutoMTLS:         mutual,
	})
	protocol, err := client.Client()
	if err != nil {
		client.Kill()
		return nil, nil, err
	}
	if err := protocol.Ping(); err != nil {
		client.Kill()
		return nil, nil, fmt.Errorf("health: %w", err)
	}
	conn, err := protocol.Dispense("connection")
	if err != nil {
		client.Kill()
		return nil, nil, err
	}
	return client, conn.(*grpc.ClientConn), nil
}

func (it *session) invoke(conn *grpc.ClientConn, method string, in, out proto.Message) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return conn.Invoke(ctx, method, in, out)
}

// errorAnswer has the frames of an error, which Velero logs.
func errorAnswer(err error) answer {
	frames := []string{}
	for _, detail := range status.Convert(err).Details() {
		if stack, ok := detail.(*generated.Stack); ok {
			for _, frame := range stack.Frames {
				frames = append(frames, fmt.Sprintf("%s:%s", frame.File, frame.Function))
			}
		}
	}
	return answer{"code": status.Code(err).String(), "message": status.Convert(err).Message(), "frames": frames}
}

// The second version of VolumeSnapshotter, which Velero's code does not have: from Init to Progress, over TLS. Messages of BackupItemAction have the same
// fields.
func (it *session) direct() (answer, error) {
	client, conn, err := open(true)
	if err != nil {
		return nil, err
	}
	defer client.Kill()
	name := it.request.Name
	var listed generated.ListPluginsResponse
	if err := it.invoke(conn, "/generated.PluginLister/ListPlugins", &generated.Empty{}, &listed); err != nil {
		return nil, err
	}
	kinds := []string{}
	for _, one := range listed.Plugins {
		kinds = append(kinds, one.Kind)
	}
	const service = "/v2.VolumeSnapshotter/"
	begin := generated.VolumeSnapshotterInitRequest{Plugin: name, Config: it.request.Config}
	if err := it.invoke(conn, service+"Init", &begin, &generated.Empty{}); err != nil {
		return errorAnswer(err), nil
	}
	var made generated.CreateSnapshotResponse
	take := generated.CreateSnapshotRequest{Plugin: name, VolumeID: it.request.ID, Tags: it.request.Tags}
	if err := it.invoke(conn, service+"CreateSnapshot", &take, &made); err != nil {
		return errorAnswer(err), nil
	}
	if it.request.Type == "cancel" {
		stop := actions.BackupItemActionCancelRequest{Plugin: name, OperationID: made.SnapshotID}
		if err := it.invoke(conn, service+"Cancel", &stop, &emptypb.Empty{}); err != nil {
			return nil, err
		}
	}
	seen := []int64{}
	for {
		var reply actions.BackupItemActionProgressResponse
		ask := actions.BackupItemActionProgressRequest{Plugin: name, OperationID: made.SnapshotID}
		if err := it.invoke(conn, service+"Progress", &ask, &reply); err != nil {
			return nil, err
		}
		seen = append(seen, reply.Progress.NCompleted)
		if reply.Progress.Completed {
			return answer{"kinds": kinds, "snapshot": made.SnapshotID, "seen": seen, "total": reply.Progress.NTotal, "err": reply.Progress.Err}, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// How long a host waits for the handshake and for the end.
func (it *session) restart() (answer, error) {
	begun := time.Now()
	client, _, err := open(false)
	if err != nil {
		return nil, err
	}
	ready := time.Since(begun)
	begun = time.Now()
	client.Kill()
	return answer{"ready_us": ready.Microseconds(), "ended_us": time.Since(begun).Microseconds(), "exited": client.Exited()}, nil
}
