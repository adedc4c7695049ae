// SPDX-License-Identifier: Apache-2.0

// Command fault-child is a mock CSI driver that misbehaves on request. Without a fault it is a small driver that keeps
// the rules: volumes are directories below --state and outlive the process. Faults are JSON (see faults.go), in the file
// --control, which is read again at every call, or in --fault, for good. What it was asked goes to --record, a line of
// JSON for each call, with the values of secrets left out.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"skycap.test/peers/internal/endpoint"
)

const drainTime = time.Second

type options struct {
	endpoint, state, control, fault, record string
	name, nodeID                            string
	mounts                                  bool
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.endpoint, "endpoint", os.Getenv("CSI_ENDPOINT"), "`address` to serve: unix:///path (default $CSI_ENDPOINT)")
	flag.StringVar(&o.state, "state", "", "`directory` for volumes, snapshots and what is known of them")
	flag.StringVar(&o.control, "control", "", "`file` with faults, read at every call; absent: none")
	flag.StringVar(&o.fault, "fault", "", "faults as `JSON`, in force from the start")
	flag.StringVar(&o.record, "record", "", "`file` that each call is appended to")
	flag.StringVar(&o.name, "name", "fault.example.com", "`name` of the driver")
	flag.StringVar(&o.nodeID, "node-id", "fault-node", "its own `name` of this node")
	flag.BoolVar(&o.mounts, "mount", false, "publish by bind mounts; otherwise a target is a plain directory")
	flag.Parse()
	if flag.NArg() > 0 || o.endpoint == "" || o.state == "" {
		fmt.Fprintln(os.Stderr, "usage: fault-child --endpoint unix:///path --state DIR [flags]")
		flag.PrintDefaults()
		os.Exit(2)
	}
	return o
}

func main() {
	o := parseFlags()
	faults, err := newFaults(o.control, o.fault)
	check(err)
	recorder, err := newRecorder(o.record)
	check(err)
	volumes, err := openStore(o.state)
	check(err)
	listener, err := endpoint.Listen(address(o.endpoint))
	check(err)
	tracked := &trackedListener{Listener: listener}
	guard := &guard{faults: faults, recorder: recorder, listener: tracked}
	server := grpc.NewServer(grpc.UnaryInterceptor(guard.unary), grpc.StreamInterceptor(guard.stream),
		grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxSendMsgSize(1<<30))
	register(server, &driver{options: o, faults: faults, store: volumes})
	go stopOnSignal(server)
	endpoint.Announce(listener)
	check(server.Serve(tracked))
}

func register(server *grpc.Server, d *driver) {
	csi.RegisterIdentityServer(server, identity{driver: d})
	csi.RegisterControllerServer(server, controller{driver: d})
	csi.RegisterNodeServer(server, node{driver: d})
	csi.RegisterGroupControllerServer(server, groups{driver: d})
	csi.RegisterSnapshotMetadataServer(server, metadata{driver: d})
}

// address turns unix:///path into what the other test peers take.
func address(text string) string {
	if path, found := strings.CutPrefix(text, "unix://"); found {
		return "unix:" + path
	}
	return text
}

func stopOnSignal(server *grpc.Server) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	time.AfterFunc(drainTime, server.Stop)
	server.GracefulStop()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// driver is what all services share.
type driver struct {
	options options
	faults  *faults
	store   *store
}
