// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const stepsAfterKill = 2

// work lets all clients work for so long, kills the daemon, and waits for them.
func (s *storm) work(length time.Duration) error {
	var clients sync.WaitGroup
	errs := make([]error, s.options.clients)
	session := s.daemon.session
	session.impatient.Store(true)
	for n := range s.options.clients {
		r := rand.New(rand.NewPCG(s.options.seed, uint64(s.round*1000+n)))
		clients.Go(func() {
			for errs[n] == nil && !session.killed.Load() {
				errs[n] = s.step(r)
			}
			for range stepsAfterKill {
				errs[n] = errors.Join(errs[n], s.stepWithoutDaemon(r))
			}
		})
	}
	time.Sleep(length)
	s.daemon.kill()
	clients.Wait()
	s.daemon.forget()
	return errors.Join(errs...)
}

// step does one thing to one volume or snapshot that no other client works on.
func (s *storm) step(r *rand.Rand) error {
	if r.IntN(5) == 0 {
		i := s.snapshots[r.IntN(len(s.snapshots))]
		if !i.TryLock() {
			return nil
		}
		defer i.Unlock()
		return s.stepSnapshot(r, i)
	}
	v := s.volumes[r.IntN(len(s.volumes))]
	if !v.TryLock() {
		return nil
	}
	defer v.Unlock()
	if v.unanswered != nil {
		return v.perform(s, v.unanswered)
	}
	switch v.state {
	case absent:
		return s.stepAbsent(r, v)
	case created:
		return s.stepCreated(r, v)
	case staged:
		return s.stepStaged(r, v)
	}
	return s.stepPublished(r, v)
}

// stepWithoutDaemon uses what is mounted: that does not need the daemon.
func (s *storm) stepWithoutDaemon(r *rand.Rand) error {
	v := s.volumes[r.IntN(len(s.volumes))]
	if !v.TryLock() {
		return nil
	}
	defer v.Unlock()
	if v.state != published || v.unanswered != nil {
		return nil
	}
	if !v.readOnly {
		if err := s.change(r, v); err != nil {
			return v.fault("%v", err)
		}
	}
	return s.verify(v)
}

func (s *storm) stepSnapshot(r *rand.Rand, i *snapshot) error {
	switch {
	case i.unanswered != nil:
		return i.perform(s, i.unanswered)
	case i.id == "":
		from, k, _ := s.chooseVolume(r)
		if from == nil {
			return nil
		}
		return i.perform(s, s.takeSnapshot(i, from, k))
	case r.IntN(3) == 0:
		return i.perform(s, s.deleteSnapshot(i))
	}
	return nil
}

// chooseVolume takes any volume that exists as the source of a copy, whatever another client does with it. Who waited here for a lock
// could wait for ever.
func (s *storm) chooseVolume(r *rand.Rand) (*origin, kind, int64) {
	return chooseItem(&s.volumes[r.IntN(len(s.volumes))].item)
}

func chooseItem(i *item) (*origin, kind, int64) {
	if !i.data.TryRLock() {
		return nil, 0, 0
	}
	defer i.data.RUnlock()
	if i.id == "" {
		return nil, 0, 0
	}
	return &origin{item: i, id: i.id}, i.kind, i.size
}

func (s *storm) stepAbsent(r *rand.Rand, v *volume) error {
	choice := r.IntN(100)
	if choice < 60 {
		k := []kind{tree, tree, ext4, block}[r.IntN(4)]
		return v.perform(s, s.create(v, k, int64(16+r.IntN(32))*mebibyte))
	}
	if choice < 63 {
		return s.copyWhileDeleting(r, v)
	}
	from, k, size := s.chooseVolume(r)
	if choice < 80 {
		from, k, size = chooseItem(&s.snapshots[r.IntN(len(s.snapshots))].item)
	}
	if from == nil {
		return nil
	}
	if r.IntN(3) == 0 {
		size += 8 * mebibyte
	}
	return v.perform(s, s.copyVolume(v, from, k, size))
}

// copyWhileDeleting copies a volume while it is being deleted: the copy is whole, or there is none; or the volume is not deleted.
func (s *storm) copyWhileDeleting(r *rand.Rand, v *volume) error {
	source := s.volumes[r.IntN(len(s.volumes))]
	if !source.TryLock() {
		return nil
	}
	defer source.Unlock()
	if source.state != created || source.unanswered != nil {
		return nil
	}
	// As another client would see it: not certain to exist.
	gone := &item{id: source.id, contents: source.contents, unanswered: &operation{what: "delete"}}
	op := s.copyVolume(v, &origin{gone, source.id}, source.kind, source.size)
	deleted := make(chan error, 1)
	go func() { deleted <- source.perform(s, s.deleteCopied(source)) }()
	err := v.perform(s, op)
	return errors.Join(err, <-deleted)
}

func (s *storm) stepCreated(r *rand.Rand, v *volume) error {
	switch choice := r.IntN(100); {
	case choice < 60:
		return v.perform(s, s.stage(v))
	case choice < 75:
		return v.perform(s, s.expand(v, v.size+int64(1+r.IntN(8))*mebibyte))
	}
	return v.perform(s, s.deleteVolume(v))
}

func (s *storm) stepStaged(r *rand.Rand, v *volume) error {
	switch choice := r.IntN(100); {
	case choice < 65:
		return s.publishAndVerify(v, r.IntN(6) == 0)
	case choice < 70:
		return v.perform(s, s.stage(v)) // once more
	case choice < 75:
		return v.perform(s, s.expand(v, v.size+int64(1+r.IntN(8))*mebibyte))
	}
	return v.perform(s, s.unstage(v))
}

func (s *storm) publishAndVerify(v *volume, readOnly bool) error {
	if err := v.perform(s, s.publish(v, readOnly)); err != nil || v.state != published {
		return err
	}
	return s.verify(v)
}

func (s *storm) stepPublished(r *rand.Rand, v *volume) error {
	choice := r.IntN(100)
	switch {
	case choice < 20:
		return v.perform(s, s.unpublish(v))
	case choice < 30:
		return v.perform(s, s.expand(v, v.size+int64(1+r.IntN(8))*mebibyte))
	case choice < 35:
		return s.publishAndVerify(v, v.readOnly) // once more
	case choice < 40 || v.readOnly || len(v.contents) > 1:
		return s.verify(v)
	}
	if err := s.change(r, v); err != nil {
		return v.fault("%v", err)
	}
	return nil
}
