// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// volume is what is known of one; its data is a directory of the same number.
type volume struct {
	ID, Name  string
	Number    int
	Size      int64
	Source    string // id of the snapshot or volume that it was made from
	FromClone bool
	Nodes     []string // where it is published by the controller
}

type snapshot struct {
	ID, Name, VolumeID, GroupID string
	Number                      int
	Size                        int64
	Taken                       time.Time
}

type group struct {
	ID, Name  string
	Snapshots []string
	Taken     time.Time
}

// store keeps all of it, in memory and in one file.
type store struct {
	lock      sync.Mutex
	directory string
	Next      int
	Volumes   []*volume
	Snapshots []*snapshot
	Groups    []*group
}

func openStore(directory string) (*store, error) {
	s := &store{directory: directory, Next: 1}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(directory, "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, s)
}

// save is called with the lock held, after each change.
func (s *store) save() {
	text, err := json.MarshalIndent(s, "", " ")
	check(err)
	path := filepath.Join(s.directory, "state.json")
	check(os.WriteFile(path+".new", text, 0o600))
	check(os.Rename(path+".new", path))
}

func (s *store) number() int {
	s.Next++
	return s.Next - 1
}

func (s *store) path(kind string, number int) string {
	return filepath.Join(s.directory, fmt.Sprintf("%s-%d", kind, number))
}

func (s *store) volume(id string) *volume {
	return find(s.Volumes, func(v *volume) bool { return v.ID == id })
}

func (s *store) volumeNamed(name string) *volume {
	return find(s.Volumes, func(v *volume) bool { return v.Name == name })
}

func (s *store) snapshot(id string) *snapshot {
	return find(s.Snapshots, func(p *snapshot) bool { return p.ID == id })
}

func (s *store) snapshotNamed(name string) *snapshot {
	return find(s.Snapshots, func(p *snapshot) bool { return p.Name == name })
}

func (s *store) group(id string) *group {
	return find(s.Groups, func(g *group) bool { return g.ID == id })
}

func (s *store) groupNamed(name string) *group {
	return find(s.Groups, func(g *group) bool { return g.Name == name })
}

func find[T any](list []*T, is func(*T) bool) *T {
	index := slices.IndexFunc(list, is)
	if index < 0 {
		return nil
	}
	return list[index]
}

// copyTree makes `to`, with what is in `from` unless that is empty.
func copyTree(from, to string) error {
	if from == "" {
		return os.MkdirAll(to, 0o755)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// makeID is an id as a driver of its own taste makes it, or one that is wrong in the way that the fault wants.
func makeID(current fault, kind string, number int) string {
	id := fmt.Sprintf("%s-%d", kind, number)
	switch current.IDs {
	case "empty":
		return ""
	case "long":
		return id + "-" + strings.Repeat("x", 300-len(id)-1)
	case "slash":
		return "pool/../" + id + "/v:other/1"
	case "other":
		return "s:somebody/else-" + id
	}
	return id
}
