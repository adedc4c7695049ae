// SPDX-License-Identifier: Apache-2.0

// Command csi-bench measures any CSI driver on a unix socket: the same calls, in the same order, by the same client.
//
//	csi-bench [flags] unix:/path/csi.sock VERB
//
//	null        GetPluginInfo again and again
//	validate    ValidateVolumeCapabilities of one volume, again and again
//	get         ControllerGetVolume of one volume, again and again
//	pairs       CreateVolume and DeleteVolume of the same volume, again and again
//	fill        creates --count volumes and leaves them
//	list        ListVolumes once through, in pages of --page; 0: as the driver likes
//	publish     NodePublishVolume and NodeUnpublishVolume of one staged volume, again and again
//	snapshots   CreateSnapshot of --volume and DeleteSnapshot, --count times
//	clones      CreateVolume from --volume and DeleteVolume, --count times
//	open        creates a volume, stages and publishes it under --directory, and prints its id
//	close       undoes that for --volume
//
// It prints one line of JSON: how long it took, how many operations there were, and the times of each kind of call in
// microseconds. Any call that fails ends it with exit code 1.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

type settings struct {
	clients    int
	count      int
	page       int
	seconds    float64
	volume     string
	directory  string
	connection string
	node       string
}

var verbs = map[string]func(*bench) error{
	"null":      (*bench).null,
	"validate":  (*bench).validate,
	"get":       (*bench).get,
	"pairs":     (*bench).pairs,
	"fill":      (*bench).fill,
	"list":      (*bench).list,
	"publish":   (*bench).publish,
	"snapshots": (*bench).snapshots,
	"clones":    (*bench).clones,
	"open":      (*bench).open,
	"close":     (*bench).close,
}

func main() {
	var s settings
	flag.IntVar(&s.clients, "clients", 1, "that work at the same time, each on a connection of its own")
	flag.Float64Var(&s.seconds, "seconds", 1, "how long to go on")
	flag.IntVar(&s.count, "count", 1, "how many")
	flag.IntVar(&s.page, "page", 1000, "entries of a page")
	flag.StringVar(&s.volume, "volume", "", "`id` of the volume")
	flag.StringVar(&s.directory, "directory", "", "where to stage and publish")
	flag.StringVar(&s.connection, "connection", "", "parameter of volumes that are made: `name` of one of skycap's connections")
	flag.StringVar(&s.node, "node", "", "`id` of the only node of a skycap cluster that volumes may be made on")
	flag.Parse()
	if flag.NArg() != 2 || verbs[flag.Arg(1)] == nil {
		fmt.Fprintln(os.Stderr, "usage: csi-bench [flags] unix:/path/csi.sock VERB")
		flag.PrintDefaults()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), s); err != nil {
		fmt.Fprintln(os.Stderr, "csi-bench:", err)
		os.Exit(1)
	}
}

func run(address, verb string, s settings) error {
	bench, err := newBench(address, s)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := verbs[verb](bench); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(bench.result(time.Since(start)))
}
