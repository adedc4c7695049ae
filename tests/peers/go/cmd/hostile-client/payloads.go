// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"strings"

	"golang.org/x/net/http2/hpack"
)

const (
	emptyCall           = "/grpc.testing.TestService/EmptyCall"
	unaryCall           = "/grpc.testing.TestService/UnaryCall"
	streamingOutputCall = "/grpc.testing.TestService/StreamingOutputCall"
)

func answered(c *counts) bool { return c.finished > 0 }

// bigMessageClaim announces 2 GiB, sends --size bytes of them and waits.
func bigMessageClaim(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	id, err := s.start(o.method)
	if err != nil {
		return nil, err
	}
	body := append(messagePrefix(1<<31), make([]byte, o.size)...)
	s.listen()
	return s.awaitAnswer(o, s.sendData(o, id, body, false)), nil
}

// emptySubmessages sends one message of --size bytes made of "field 3, no bytes" again and again: cheap to
// send, and a decoder that allocates for each of them needs a hundred times the memory.
func emptySubmessages(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	id, err := s.start(o.method)
	if err != nil {
		return nil, err
	}
	s.listen()
	message := bytes.Repeat([]byte{0x1a, 0x00}, o.size/2)
	return s.awaitAnswer(o, s.sendData(o, id, framed(message), true)), nil
}

// headerBomb sends --size bytes of headers with names of one byte.
func headerBomb(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	s.request(o.method)
	s.block.Write(smallHeaders(o.size))
	return s.awaitAnswer(o, s.callWithBlock()), nil
}

// hpackBomb stores one header of 3.9 KiB in the compression table and names it --size times, a byte each.
func hpackBomb(o *options) (*report, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	s.request(o.method)
	big := hpack.HeaderField{Name: "x", Value: strings.Repeat("a", 3900)}
	for range o.size + 1 {
		s.encoder.WriteField(big)
	}
	return s.awaitAnswer(o, s.callWithBlock()), nil
}

// callWithBlock makes a whole call, with an empty message, of the header block as it is.
func (s *session) callWithBlock() error {
	s.listen()
	id, err := s.sendBlock(true)
	if err != nil {
		return err
	}
	return s.flushed(s.framer.WriteData(id, true, framed(nil)))
}

// awaitAnswer waits for the end of the stream and reports.
func (s *session) awaitAnswer(o *options, sending error) *report {
	s.seen.wait(o.time(), answered)
	r := &report{}
	r.addSending(sending)
	return s.close(r)
}

// sendData keeps to the flow-control windows and stops when the server has answered.
func (s *session) sendData(o *options, id uint32, body []byte, end bool) error {
	for len(body) > 0 && !s.seen.holds(answered) {
		if err := s.out.Flush(); err != nil {
			return err
		}
		s.seen.wait(o.time(), func(c *counts) bool {
			return answered(c) || (c.connWindow > 0 && c.streamWindow > 0)
		})
		chunk := s.seen.takeWindow(min(len(body), frameSize))
		if chunk <= 0 {
			return s.whyNotSent()
		}
		if err := s.framer.WriteData(id, end && chunk == len(body), body[:chunk]); err != nil {
			return err
		}
		body = body[chunk:]
	}
	return s.out.Flush()
}

func (s *session) whyNotSent() error {
	switch {
	case s.seen.holds(answered):
		return nil
	case s.seen.holds(isOpen):
		return os.ErrDeadlineExceeded
	default:
		return io.ErrClosedPipe
	}
}

// takeWindow returns how much of want may be sent now, and counts it as sent.
func (o *observer) takeWindow(want int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	chunk := min(want, o.counts.connWindow, o.counts.streamWindow)
	o.counts.connWindow -= chunk
	o.counts.streamWindow -= chunk
	return chunk
}

func (s *session) flushed(err error) error {
	if err != nil {
		return err
	}
	return s.out.Flush()
}
