// SPDX-License-Identifier: Apache-2.0

// Command hostile-client attacks an HTTP/2 gRPC server in one way, for a bounded time and with a bounded
// number of frames, and prints one line that says what happened. Whether that was right is for the
// caller to judge: the exit code is 0 whenever the attack could be carried out.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxCount   = 10_000_000
	maxSeconds = 300
)

type options struct {
	addr    string
	method  string
	count   int
	size    int
	window  int
	seconds float64
	stage   string
	deaf    bool
	stall   bool
	drain   bool
}

func (o *options) time() time.Duration {
	return time.Duration(o.seconds * float64(time.Second))
}

// attack is one entry of the table: what it does and the values of N, --size and --method it has by itself.
type attack struct {
	count  int
	size   int
	method string
	run    func(*options) (*report, error)
}

var attacks = map[string]attack{
	"ping-flood":         {count: 100_000, run: pingFlood},
	"settings-flood":     {count: 100_000, run: settingsFlood},
	"reset-flood":        {count: 100_000, method: emptyCall, run: resetFlood},
	"continuation-flood": {count: 100_000, method: emptyCall, run: continuationFlood},
	"many-streams":       {count: 10_000, method: emptyCall, run: manyStreams},
	"half-open":          {count: 1, method: emptyCall, run: halfOpen},
	"slow-reader":        {count: 1, size: 64 << 20, method: streamingOutputCall, run: slowReader},
	"window-tiny":        {size: 64 << 10, method: unaryCall, run: windowTiny},
	"big-message-claim":  {size: 1024, method: emptyCall, run: bigMessageClaim},
	"empty-submessages":  {size: 4 << 20, method: emptyCall, run: emptySubmessages},
	"header-bomb":        {size: 1 << 20, method: emptyCall, run: headerBomb},
	"hpack-bomb":         {size: 64 << 10, method: emptyCall, run: hpackBomb},
}

func main() {
	o := &options{}
	flag.Float64Var(&o.seconds, "seconds", 10, "end after this `time` at the latest")
	flag.StringVar(&o.method, "method", "", "`path` to call (default: one of grpc.testing.TestService)")
	flag.IntVar(&o.size, "size", -1, "`bytes` of what the attack sends or asks for")
	flag.IntVar(&o.window, "window", 1<<31-1, "slow-reader: flow-control window in `bytes`")
	flag.StringVar(&o.stage, "stage", "connect", "half-open: stop `after` connect, preface, headers or message")
	flag.BoolVar(&o.deaf, "deaf", false, "floods: read nothing before all is sent")
	flag.BoolVar(&o.stall, "stall", false, "window-tiny: never open the window again")
	flag.BoolVar(&o.drain, "drain", false, "slow-reader: read all after the pause")
	flag.Usage = usage
	flag.Parse()
	name := flag.Arg(1)
	chosen, known := attacks[name]
	if !known || !complete(o, chosen) {
		usage()
		os.Exit(2)
	}
	result, err := chosen.run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	fmt.Println(name, result)
}

// complete fills in the address, N and what the attack has by itself; it returns false for wrong values.
func complete(o *options, chosen attack) bool {
	o.addr, o.count = flag.Arg(0), chosen.count
	if flag.NArg() == 3 {
		count, err := strconv.Atoi(flag.Arg(2))
		if err != nil {
			return false
		}
		o.count = count
	}
	if o.size < 0 {
		o.size = chosen.size
	}
	if o.method == "" {
		o.method = chosen.method
	}
	return flag.NArg() <= 3 && o.count >= 0 && o.count <= maxCount && o.seconds > 0 && o.seconds <= maxSeconds
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: hostile-client [flags] ADDR ATTACK [N]\n\nattacks:",
		strings.Join(slices.Sorted(maps.Keys(attacks)), " "))
	fmt.Fprintln(os.Stderr, "\nflags:")
	flag.PrintDefaults()
}
