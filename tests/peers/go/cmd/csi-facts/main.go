// SPDX-License-Identifier: Apache-2.0

// Command csi-facts asks a CSI driver on this machine for everything that it promises beyond what csi-sanity
// looks at, with real mounts and devices, and prints one line for each case: "ok CASE" or "FAILED CASE: why".
// Cases run one after another; each removes what it made.
//
// The groups before-reboot and after-reboot belong together: in between, the caller ends the driver, takes all
// its mounts and loop devices away, and starts it again.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// fact is one case.
type fact struct {
	name string
	show func(*trial)
}

var groups = map[string][]fact{
	"all": slices.Concat(nameFacts, repeatFacts, capacityFacts, topologyFacts, listFacts, copyFacts, publishFacts,
		mountFacts, repairFacts, growFacts, ephemeralFacts, healthFacts, versionFacts, secretFacts, lastFacts),
	"copies":        slices.Concat(repeatFacts, copyFacts, lastFacts),
	"csi-1.13":      newVersionFacts,
	"before-reboot": beforeRebootFacts,
	"after-reboot":  afterRebootFacts,
}

func main() {
	d := &driver{}
	flag.StringVar(&d.dir, "dir", "", "`directory` for staging and target paths")
	flag.StringVar(&d.log, "log", "", "`file` with the driver's log, at its most talkative")
	flag.BoolVar(&d.cutsDevices, "cuts-devices", false, "a copy of a raw device in use is of one instant")
	flag.BoolVar(&d.enforcesTrees, "enforces-trees", false, "volumes that are directories have a real limit")
	flag.BoolVar(&d.compresses, "compresses", false, "the parameter compression is served")
	flag.BoolVar(&d.ownsSpace, "owns-space", false, "nobody else uses the space that volumes are made of")
	only := flag.String("only", "", "run only cases whose name has this `part`")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() != 2 || d.dir == "" || groups[flag.Arg(1)] == nil {
		usage()
		os.Exit(2)
	}
	if err := d.connect(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	failures := 0
	for _, f := range groups[flag.Arg(1)] {
		if strings.Contains(f.name, *only) && !show(d, f) {
			failures++
		}
	}
	if failures > 0 {
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: csi-facts [flags] ADDRESS GROUP\n\ngroups:",
		strings.Join(slices.Sorted(maps.Keys(groups)), " "))
	fmt.Fprintln(os.Stderr, "\nflags:")
	flag.PrintDefaults()
}
