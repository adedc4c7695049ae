// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// flood sends o.count times what each writes, then waits until done holds or the time is up.
func flood(o *options, s *session, each func(i int) error, done func(*counts) bool) *report {
	if !o.deaf {
		s.listen()
	}
	var err error
	sent := 0
	for ; sent < o.count && err == nil && (o.deaf || s.seen.holds(isOpen)); sent++ {
		err = each(sent)
	}
	if err == nil {
		err = s.out.Flush()
	}
	if o.deaf {
		s.listen()
	}
	s.seen.wait(o.time(), done)
	r := &report{}
	r.add("sent", sent)
	r.addSending(err)
	return r
}

func isOpen(c *counts) bool { return c.end == "" }

func never(*counts) bool { return false }

func pingFlood(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	ping := func(i int) error {
		var data [8]byte
		binary.BigEndian.PutUint64(data[:], uint64(i))
		return s.framer.WritePing(false, data)
	}
	r := flood(o, s, ping, func(c *counts) bool { return c.pingAcks >= o.count })
	r.add("acks", s.seen.value(pingAcks))
	return s.close(r), nil
}

func settingsFlood(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	change := func(i int) error {
		return s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535 + uint32(i&1)})
	}
	// One more acknowledgement belongs to the handshake.
	r := flood(o, s, change, func(c *counts) bool { return c.settingsAcks > o.count })
	r.add("acks", max(0, s.seen.value(settingsAcks)-1))
	return s.close(r), nil
}

// resetFlood opens and cancels streams as fast as it can ("rapid reset"), then asks whether anyone is there.
func resetFlood(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	openAndReset := func(i int) error {
		id, err := s.start(o.method)
		if err != nil {
			return err
		}
		if err := s.framer.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
			return err
		}
		if i == o.count-1 {
			return s.framer.WritePing(false, [8]byte{})
		}
		return nil
	}
	r := flood(o, s, openAndReset, func(c *counts) bool { return c.pingAcks > 0 })
	r.add("ping-answered", s.seen.value(pingAcks) > 0)
	return s.close(r), nil
}

// continuationFlood never ends its header block. With --size the frames carry small headers.
func continuationFlood(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	fragment := smallHeaders(min(o.size, frameSize))
	s.request(o.method)
	id, err := s.sendBlock(false)
	if err != nil {
		return nil, err
	}
	r := flood(o, s, func(int) error { return s.framer.WriteContinuation(id, false, fragment) }, never)
	return s.close(r), nil
}

// smallHeaders encodes headers with names and values of one byte, which no table shortens.
func smallHeaders(size int) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; block.Len() < size; i++ {
		encoder.WriteField(hpack.HeaderField{Name: string(rune('a' + i%26)), Value: "1", Sensitive: true})
	}
	return block.Bytes()
}

// manyStreams opens more streams than the server allows and leaves all of them unfinished.
func manyStreams(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	start := func(int) error {
		_, err := s.start(o.method)
		return err
	}
	r := flood(o, s, start, never)
	r.add("finished", s.seen.value(finished))
	return s.close(r), nil
}
