// SPDX-License-Identifier: Apache-2.0

// Command sample-driver is a CSI driver to stand behind a connection in tests: it keeps volumes in memory only, mounts nothing, can be
// told what it lacks and what it is slow at, and writes down every request as it has got it. With --old-bytes its raw volumes are real.
package main

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"skycap.test/peers/internal/grpcserver"
)

// pairs is a flag like --topology key=value, which may be given several times.
type pairs map[string]string

func (p pairs) String() string { return fmt.Sprint(map[string]string(p)) }

func (p pairs) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q is not like key=value", text)
	}
	p[key] = value
	return nil
}

// times is a flag like --slow Method=2s.
type times map[string]time.Duration

func (t times) String() string { return fmt.Sprint(map[string]time.Duration(t)) }

func (t times) Set(text string) error {
	method, value, _ := strings.Cut(text, "=")
	duration, err := time.ParseDuration(value)
	t[method] = duration
	return err
}

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	csi.UnimplementedNodeServer

	name        string
	nodeID      string
	handleBytes int
	topology    pairs
	without     string
	slow        times
	page        int
	maxVolumes  int64
	capacity    int64
	record      string
	strict      bool
	late        times
	oldBytes    string

	mutex     sync.Mutex // of all that follows
	volumes   []*volume
	snapshots []*csi.Snapshot
	groups    map[string]*csi.VolumeGroupSnapshot
}

type volume struct {
	*csi.Volume
	name    string
	nodeIDs []string
}

func main() {
	d := &driver{topology: pairs{}, slow: times{}, late: times{}, groups: map[string]*csi.VolumeGroupSnapshot{}}
	flag.StringVar(&d.name, "name", "sample.example.com", "`name` of the driver")
	flag.StringVar(&d.nodeID, "node-id", "sample-node", "`name` of this node, as the driver has it")
	flag.IntVar(&d.handleBytes, "handle-bytes", 0, "make ids at least so `long`")
	flag.Var(d.topology, "topology", "`key=value` of this node; may be repeated")
	flag.StringVar(&d.without, "without", "", "capabilities that are not there, by their `names`, with commas")
	flag.Var(d.slow, "slow", "`method=duration` that it takes; may be repeated")
	flag.IntVar(&d.page, "page", 0, "the most `entries` in an answer, whatever is asked for")
	flag.Int64Var(&d.maxVolumes, "max-volumes", 0, "`limit` of the node")
	flag.Int64Var(&d.capacity, "capacity", 1<<40, "`bytes` that all volumes together can have")
	flag.StringVar(&d.record, "record", "", "`file` that gets a line of JSON for each request")
	flag.BoolVar(&d.strict, "strict", false, "to delete a volume that is not there is NOT_FOUND, against the specification; to unpublish or unstage it, too")
	flag.Var(d.late, "late", "`method=duration` that the answer takes when all is done; may be repeated")
	flag.StringVar(&d.oldBytes, "old-bytes", "", "`directory` of raw volumes, which hold what was there before they were made")
	grpcserver.Main(func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, d)
		csi.RegisterControllerServer(server, d)
		csi.RegisterGroupControllerServer(server, d)
		csi.RegisterNodeServer(server, d)
	}, grpc.UnaryInterceptor(d.intercept))
}
