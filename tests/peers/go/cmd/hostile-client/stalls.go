// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"skycap.test/peers/internal/endpoint"
)

// slowReader asks for N streams of --size bytes each and reads nothing for --seconds. The window is huge by
// default, so that only the full socket can stop the server.
func slowReader(o *options) (*report, error) {
	s, err := open(o, http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(o.window)})
	if err != nil {
		return nil, err
	}
	if more := o.window - 65535; more > 0 {
		s.framer.WriteWindowUpdate(0, uint32(more))
	}
	request, err := proto.Marshal(streamRequest(o.size))
	if err != nil {
		return nil, err
	}
	for range o.count {
		if _, err := s.call(o.method, request); err != nil {
			return nil, err
		}
	}
	time.Sleep(o.time())
	r := &report{}
	r.add("streams", o.count)
	r.add("asked", o.count*o.size)
	if !o.drain {
		return r, s.conn.Close()
	}
	s.limitTime(o.time())
	s.listen()
	s.seen.wait(o.time(), func(c *counts) bool { return c.finished >= o.count })
	r.add("finished", s.seen.value(finished))
	return s.close(r), nil
}

// streamRequest asks for size bytes in messages of a megabyte at most.
func streamRequest(size int) *testpb.StreamingOutputCallRequest {
	request := &testpb.StreamingOutputCallRequest{}
	for size > 0 {
		piece := min(size, 1<<20)
		request.ResponseParameters = append(request.ResponseParameters, &testpb.ResponseParameters{Size: int32(piece)})
		size -= piece
	}
	return request
}

// windowTiny takes an answer of --size bytes through a window of one byte, or with --stall only its first byte.
func windowTiny(o *options) (*report, error) {
	s, err := open(o, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	if err != nil {
		return nil, err
	}
	s.conn.SetWriteDeadline(time.Now().Add(o.time()))
	request, err := proto.Marshal(&testpb.SimpleRequest{ResponseSize: int32(o.size)})
	if err != nil {
		return nil, err
	}
	id, err := s.call(o.method, request)
	if err != nil {
		return nil, err
	}
	s.listen()
	if o.stall {
		s.seen.wait(o.time(), answered)
	} else {
		err = s.openByteByByte(o, id)
	}
	r := &report{}
	r.addSending(err)
	return s.close(r), nil
}

func (s *session) openByteByByte(o *options, id uint32) error {
	deadline := time.Now().Add(o.time())
	given := 0
	for time.Now().Before(deadline) && !s.seen.holds(func(c *counts) bool { return answered(c) || !isOpen(c) }) {
		s.seen.wait(time.Until(deadline), func(c *counts) bool { return answered(c) || c.dataBytes > given })
		taken := s.seen.value(dataBytes) - given
		if taken == 0 {
			continue
		}
		given += taken
		s.framer.WriteWindowUpdate(0, uint32(taken))
		s.framer.WriteWindowUpdate(id, uint32(taken))
		if err := s.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// halfOpen makes N connections that go silent at --stage, and reports how many the server closed, and when.
func halfOpen(o *options) (*report, error) {
	started := time.Now()
	var closed []time.Duration
	var mu sync.Mutex
	var group sync.WaitGroup
	for range o.count {
		conn, err := goSilent(o)
		if err != nil {
			return nil, err
		}
		group.Go(func() {
			defer conn.Close()
			conn.SetReadDeadline(started.Add(o.time()))
			if _, err := io.Copy(io.Discard, conn); !isTimeout(err) {
				mu.Lock()
				defer mu.Unlock()
				closed = append(closed, time.Since(started))
			}
		})
	}
	group.Wait()
	return halfOpenReport(o, closed), nil
}

func halfOpenReport(o *options, closed []time.Duration) *report {
	r := &report{}
	r.add("stage", o.stage)
	r.add("connections", o.count)
	r.add("closed", len(closed))
	if len(closed) > 0 {
		r.add("first-ms", closed[0].Milliseconds())
		r.add("last-ms", closed[len(closed)-1].Milliseconds())
	}
	return r
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

func goSilent(o *options) (net.Conn, error) {
	if o.stage == "connect" {
		return endpoint.Dial(o.addr, connectTime)
	}
	if o.stage == "preface" {
		conn, err := endpoint.Dial(o.addr, connectTime)
		if err == nil {
			_, err = io.WriteString(conn, http2.ClientPreface)
		}
		return conn, err
	}
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	switch o.stage {
	case "headers":
		s.request(o.method)
		_, err = s.sendBlock(false)
	case "message":
		var id uint32
		if id, err = s.start(o.method); err == nil {
			err = s.framer.WriteData(id, false, messagePrefix(10))
		}
	default:
		err = fmt.Errorf("no stage %q", o.stage)
	}
	return s.conn, s.flushed(err)
}
