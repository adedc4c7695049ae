// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type kind int

const (
	tree kind = iota
	ext4
	block
)

type state int

const (
	absent state = iota
	created
	staged
	published
)

// operation is something that a client wants of the daemon. Until it is answered it is tried again, with the same
// request; when it is answered the model changes.
type operation struct {
	what string
	try  func(*session) error
	// A copy that was begun before the daemon was killed may be made anew at its start, of what the source holds then. nil: no copy.
	begunAgain func()
}

// errBusy: what the operation needs is in use by another client; it has not been tried.
var errBusy = errors.New("busy")

// item is a volume or a snapshot: one of a fixed number of places, each of which has many lives.
//
// Its own lock is held by the client that works on it. Others may copy it meanwhile, unless its contents change: the second lock is
// for what they need to know.
type item struct {
	sync.Mutex
	data       sync.RWMutex // id, kind, size, contents, unanswered
	label      string
	name       string // of this life
	id         string // empty: absent, or its creation was not answered
	kind       kind
	size       int64
	growsTo    int64      // by an operation that was not answered
	contents   []*content // what it may hold: more than one after an unanswered copy of something that changed
	unanswered *operation
	history    []string
}

type volume struct {
	item
	state    state
	readOnly bool // of its publication
}

type snapshot struct {
	item
	source string
}

func (i *item) note(format string, values ...any) {
	i.history = append(i.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, values...))
	if len(i.history) > 40 {
		i.history = i.history[1:]
	}
}

// fault is what is reported when the daemon does not keep its word.
func (i *item) fault(format string, values ...any) error {
	return fmt.Errorf("%s %s (%s): %s\n    %s", i.label, i.name, i.id, fmt.Sprintf(format, values...),
		strings.Join(i.history, "\n    "))
}

// perform tries an operation and keeps it if it was not answered.
func (i *item) perform(s *storm, op *operation) error {
	err := op.try(s.daemon.session)
	switch {
	case errors.Is(err, errBusy):
		return nil
	case errors.Is(err, errUnanswered):
		i.note("%s: unanswered", op.what)
		i.setUnanswered(op)
		s.unanswered.Add(1)
		return nil
	case err != nil:
		return i.fault("%s: %v", op.what, err)
	}
	i.note("%s: ok, %s", op.what, i.id)
	i.setUnanswered(nil)
	s.counts.add(op.what)
	return nil
}

func (i *item) setUnanswered(op *operation) {
	i.data.Lock()
	defer i.data.Unlock()
	i.unanswered = op
}

func (i *item) addContents(more []*content) {
	for _, c := range more {
		if !slices.Contains(i.contents, c) {
			i.contents = append(i.contents, c)
		}
	}
}

// storm is the whole test.
type storm struct {
	options       *options
	random        *rand.Rand // of the main goroutine
	daemon        *daemon
	round         int
	volumes       []*volume
	snapshots     []*snapshot
	lives         atomic.Int64 // for names
	deletedLock   sync.Mutex
	deleted       map[string]bool // ids whose deletion was answered
	counts        counts
	unanswered    atomic.Int64
	written       atomic.Int64
	starts        []time.Duration
	seenVolumes   int
	seenSnapshots int
	// Whether the kernel lets this machine's root, and so the daemon, grow ext4 while it is mounted.
	mayGrowMounted bool
}

func newStorm(o *options) (*storm, error) {
	work, err := filepath.EvalSymlinks(o.work)
	if err != nil {
		return nil, err
	}
	o.work = work
	s := &storm{options: o, random: rand.New(rand.NewPCG(o.seed, 0)), deleted: map[string]bool{},
		counts: counts{of: map[string]int{}}}
	for n := range o.volumes {
		s.volumes = append(s.volumes, &volume{item: item{label: fmt.Sprintf("volume %d", n)}})
	}
	for n := range o.volumes/3 + 1 {
		s.snapshots = append(s.snapshots, &snapshot{item: item{label: fmt.Sprintf("snapshot %d", n)}})
	}
	for _, directory := range []string{"staging", "targets"} {
		if err := os.MkdirAll(filepath.Join(o.work, directory), 0o700); err != nil {
			return nil, err
		}
	}
	if s.mayGrowMounted, err = hasResourceCapability(); err != nil {
		return nil, err
	}
	s.daemon, err = newDaemon(o)
	return s, err
}

// hasResourceCapability looks for CAP_SYS_RESOURCE among this process's.
func hasResourceCapability() (bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, err
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	var set uint64
	if _, err := fmt.Sscanf(rest, "%x", &set); err != nil {
		return false, fmt.Errorf("read the capabilities: %w", err)
	}
	return set>>24&1 == 1, nil
}

func (s *storm) newName(what string) string {
	return fmt.Sprintf("storm-%s-%d", what, s.lives.Add(1))
}

func (s *storm) rememberDeleted(id string) {
	s.deletedLock.Lock()
	defer s.deletedLock.Unlock()
	s.deleted[id] = true
}

func (s *storm) stagingPath(v *volume) string {
	return filepath.Join(s.options.work, "staging", v.name)
}

func (s *storm) targetPath(v *volume) string {
	return filepath.Join(s.options.work, "targets", v.name)
}

func handleOf(id string) string { return filepath.Base(id) }

// counts are the answered calls by what they asked.
type counts struct {
	sync.Mutex
	of map[string]int
}

func (c *counts) add(what string) {
	c.Lock()
	defer c.Unlock()
	c.of[what]++
}

func (c *counts) total() int {
	total := 0
	for _, count := range c.of {
		total += count
	}
	return total
}

func (c *counts) String() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		parts = append(parts, fmt.Sprintf("%d %s", c.of[what], what))
	}
	return strings.Join(parts, ", ")
}
