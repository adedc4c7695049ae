// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
)

// finish asks again for all that was not answered, reads every byte there is, then deletes everything and looks whether something stays.
func (s *storm) finish() error {
	if err := s.start(); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"at the end", s.audit},
		{"asked again", s.settle},
		{"with everything answered", s.audit},
		{"reading all volumes", s.readVolumes},
		{"reading all snapshots", s.readSnapshots},
		{"deleting all", s.deleteAll},
		{"with everything deleted", s.audit},
	} {
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return s.daemon.stop()
}

func (s *storm) settle() error {
	for _, v := range s.volumes {
		if v.unanswered != nil {
			if err := v.perform(s, v.unanswered); err != nil {
				return err
			}
		}
	}
	for _, i := range s.snapshots {
		if i.unanswered != nil {
			if err := i.perform(s, i.unanswered); err != nil {
				return err
			}
		}
	}
	return nil
}

// readVolumes takes each volume from its mounts and brings it back: what is read then comes from the disk.
func (s *storm) readVolumes() error {
	for _, v := range s.volumes {
		if v.state == absent {
			continue
		}
		if err := s.withdraw(v); err != nil {
			return err
		}
		if err := s.read(v); err != nil {
			return err
		}
		s.seenVolumes++
	}
	return nil
}

func (s *storm) withdraw(v *volume) error {
	for _, op := range []struct {
		from state
		make func(*volume) *operation
	}{{published, s.unpublish}, {staged, s.unstage}} {
		if v.state != op.from {
			continue
		}
		if err := v.perform(s, op.make(v)); err != nil {
			return err
		}
	}
	return nil
}

func (s *storm) read(v *volume) error {
	if err := v.perform(s, s.stage(v)); err != nil {
		return err
	}
	if err := s.publishAndVerify(v, false); err != nil {
		return err
	}
	return s.withdraw(v)
}

// readSnapshots makes a volume of each snapshot, in a place of its own.
func (s *storm) readSnapshots() error {
	v := &volume{item: item{label: "restored volume"}}
	for _, i := range s.snapshots {
		if i.id == "" {
			continue
		}
		v.history = append([]string{}, i.history...)
		if err := v.perform(s, s.copyVolume(v, &origin{&i.item, i.id}, i.kind, i.size)); err != nil {
			return err
		}
		if err := s.read(v); err != nil {
			return err
		}
		if err := v.perform(s, s.deleteVolume(v)); err != nil {
			return err
		}
		s.seenSnapshots++
	}
	return nil
}

func (s *storm) deleteAll() error {
	for _, v := range s.volumes {
		if v.state == absent {
			continue
		}
		if err := v.perform(s, s.deleteVolume(v)); err != nil {
			return err
		}
	}
	for _, i := range s.snapshots {
		if i.id == "" {
			continue
		}
		if err := i.perform(s, s.deleteSnapshot(i)); err != nil {
			return err
		}
	}
	return nil
}
