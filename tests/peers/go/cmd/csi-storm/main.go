// SPDX-License-Identifier: Apache-2.0

// Command csi-storm shows that a killed daemon loses nothing. Several clients make, copy, snapshot, grow,
// mount, write and delete volumes at random while the daemon is killed with SIGKILL at random moments
// and started again. A model keeps what was answered: that must hold after every start. What was not
// answered may or may not have happened, and is asked for again.
//
// It ends with exit code 0 and its figures, or 1 and a line "FAILED: WHY".
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"
)

type options struct {
	program  string
	work     string
	backend  string
	poolSize string
	rounds   int
	volumes  int
	clients  int
	slower   int
	seed     uint64
}

// The kernel ends the daemon together with the thread that started it: that is the first one.
func init() { runtime.LockOSThread() }

func main() {
	o := &options{}
	flag.StringVar(&o.program, "skycap", "build/skycap", "`program` to serve with")
	flag.StringVar(&o.work, "work", "", "empty `directory` for data, socket, log and mounts")
	flag.StringVar(&o.backend, "backend", "btrfs", "`name` of the back end")
	flag.StringVar(&o.poolSize, "pool-size", "8Gi", "`size` of the btrfs pool")
	flag.IntVar(&o.rounds, "rounds", 25, "how `often` the daemon is killed")
	flag.IntVar(&o.volumes, "volumes", 200, "most volumes at a `time`")
	flag.IntVar(&o.clients, "clients", 6, "how `many` work at a time")
	flag.IntVar(&o.slower, "slower", 1, "`factor` for time limits")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64(), "`number` that the choices are made from")
	flag.Parse()
	if o.work == "" || flag.NArg() > 0 || o.volumes < 4 || o.clients < 1 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Printf("%s, seed %d\n", o.backend, o.seed)
	s, err := newStorm(o)
	if err == nil {
		err = s.run()
		s.daemon.kill()
	}
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
	s.report()
}

func (s *storm) run() error {
	for s.round = 1; s.round <= s.options.rounds; s.round++ {
		if err := s.runRound(); err != nil {
			return fmt.Errorf("round %d: %w", s.round, err)
		}
	}
	return s.finish()
}

// One round: sometimes a kill in the midst of the start; a start, a look at everything, work, a kill.
func (s *storm) runRound() error {
	if s.random.IntN(6) == 0 {
		if err := s.daemon.launch(); err != nil {
			return err
		}
		time.Sleep(time.Duration(s.random.Int64N(int64(40 * time.Millisecond))))
		s.daemon.kill()
	}
	if err := s.start(); err != nil {
		return err
	}
	if err := s.audit(); err != nil {
		return err
	}
	end := time.Duration(10+s.random.IntN(600)) * time.Millisecond
	return s.work(end)
}

func (s *storm) start() error {
	took, err := s.daemon.start()
	if err != nil {
		return err
	}
	s.starts = append(s.starts, took)
	limit := startLimit * time.Duration(s.options.slower)
	if took > limit {
		return fmt.Errorf("the daemon was ready after %v, later than %v", took, limit)
	}
	return nil
}

func (s *storm) report() {
	median, longest := spread(s.starts)
	fmt.Printf("%d kills, %d answered calls (%s), %d unanswered; %d bytes written\n", s.daemon.kills,
		s.counts.total(), &s.counts, s.unanswered.Load(), s.written.Load())
	fmt.Printf("%d volumes and %d snapshots with all their bytes at the end; started %d times, ready after %.3f s (median), %.3f s (longest)\n",
		s.seenVolumes, s.seenSnapshots, len(s.starts), median.Seconds(), longest.Seconds())
}
