// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func (b *bench) null() error {
	return b.untilEnd(func(c *client, times times, _ int) error {
		return times.measure("call", c.getInfo)
	})
}

// onOneVolume repeats a call for a volume that is there only for that.
func (b *bench) onOneVolume(call func(c *client, id string) error) error {
	id, err := b.clients[0].create(fmt.Sprintf("one-%d", os.Getpid()), nil)
	if err != nil {
		return err
	}
	err = b.untilEnd(func(c *client, times times, _ int) error {
		return times.measure("call", func() error { return call(c, id) })
	})
	if err != nil {
		return err
	}
	return b.clients[0].remove(id)
}

func (b *bench) validate() error { return b.onOneVolume((*client).validateOne) }
func (b *bench) get() error      { return b.onOneVolume((*client).getOne) }

// pair makes a volume and deletes it again.
func (c *client) pair(times times, name string, source *csi.VolumeContentSource) error {
	var id string
	err := times.measure("create", func() (err error) {
		id, err = c.create(name, source)
		return err
	})
	if err != nil {
		return err
	}
	return times.measure("delete", func() error { return c.remove(id) })
}

func (b *bench) pairs() error {
	return b.untilEnd(func(c *client, times times, round int) error {
		return c.pair(times, fmt.Sprintf("pair-%d-%d-%d", os.Getpid(), c.number, round), nil)
	})
}

func (b *bench) fill() error {
	var next atomic.Int64
	return b.together(func(c *client, times times) error {
		for i := next.Add(1); i <= int64(b.count); i = next.Add(1) {
			err := times.measure("create", func() error {
				_, err := c.create(fmt.Sprintf("fill-%d-%d", os.Getpid(), i), nil)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) list() error {
	token := ""
	for {
		var reply *csi.ListVolumesResponse
		err := b.times.measure("page", func() (err error) {
			ctx, cancel := withTime()
			defer cancel()
			reply, err = b.clients[0].ListVolumes(ctx,
				&csi.ListVolumesRequest{MaxEntries: int32(b.page), StartingToken: token})
			return err
		})
		if err != nil {
			return err
		}
		b.listed += len(reply.Entries)
		if token = reply.NextToken; token == "" {
			return nil
		}
	}
}

func (b *bench) publish() error {
	if err := b.open(); err != nil {
		return err
	}
	c := b.clients[0]
	if err := b.unpublishAt(c, b.id); err != nil {
		return err
	}
	err := b.untilEnd(func(c *client, times times, _ int) error {
		if err := times.measure("publish", func() error { return b.publishAt(c, b.id) }); err != nil {
			return err
		}
		return times.measure("unpublish", func() error { return b.unpublishAt(c, b.id) })
	})
	if err != nil {
		return err
	}
	b.volume = b.id
	return b.close()
}

func (b *bench) repeat(step func(round int) error) error {
	for round := range b.count {
		if err := step(round); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) snapshots() error {
	c := b.clients[0]
	return b.repeat(func(round int) error {
		var id string
		err := b.times.measure("create", func() (err error) {
			id, err = c.snapshot(fmt.Sprintf("snapshot-%d-%d", os.Getpid(), round), b.volume)
			return err
		})
		if err != nil {
			return err
		}
		return b.times.measure("delete", func() error { return c.removeSnapshot(id) })
	})
}

func (b *bench) clones() error {
	source := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: b.volume}}}
	return b.repeat(func(round int) error {
		return b.clients[0].pair(b.times, fmt.Sprintf("clone-%d-%d", os.Getpid(), round), source)
	})
}

func (b *bench) open() (err error) {
	c := b.clients[0]
	if b.id, err = c.create(fmt.Sprintf("open-%d", time.Now().UnixNano()), nil); err != nil {
		return err
	}
	if err := b.stage(c, b.id); err != nil {
		return err
	}
	return b.publishAt(c, b.id)
}

func (b *bench) close() error {
	c := b.clients[0]
	for _, undo := range []func(*client, string) error{b.unpublishAt, b.unstage} {
		if err := undo(c, b.volume); err != nil {
			return err
		}
	}
	return c.remove(b.volume)
}
