// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"skycap.test/peers/internal/endpoint"
)

const (
	connectTime = 5 * time.Second
	frameSize   = 16384 // what every peer accepts
)

// session is one connection after the exchange of SETTINGS. It reads nothing until listen is called,
// and what it then reads is only counted: nothing is acknowledged or answered behind the attack's back.
type session struct {
	conn    net.Conn
	out     *bufio.Writer
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	nextID  uint32
	started time.Time
	seen    *observer
}

// open connects and shakes hands. The connection is given up when o.seconds have passed.
func open(o *options, settings ...http2.Setting) (*session, error) {
	conn, err := endpoint.Dial(o.addr, connectTime)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, out: bufio.NewWriterSize(conn, frameSize), nextID: 1, started: time.Now()}
	s.framer = http2.NewFramer(s.out, conn)
	s.framer.AllowIllegalWrites = true
	s.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.encoder = hpack.NewEncoder(&s.block)
	s.seen = newObserver()
	s.limitTime(o.time())
	if err := s.shakeHands(settings); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// limitTime leaves half of the time for reading the answer of a server that stopped reading.
func (s *session) limitTime(limit time.Duration) {
	s.conn.SetReadDeadline(time.Now().Add(limit))
	s.conn.SetWriteDeadline(time.Now().Add(limit / 2))
}

func (s *session) shakeHands(settings []http2.Setting) error {
	io.WriteString(s.out, http2.ClientPreface)
	s.framer.WriteSettings(settings...)
	if err := s.out.Flush(); err != nil {
		return err
	}
	frame, err := s.framer.ReadFrame()
	if err != nil {
		return fmt.Errorf("no SETTINGS of the server: %w", err)
	}
	if _, ok := frame.(*http2.SettingsFrame); !ok {
		return fmt.Errorf("the server's first frame is %v", frame.Header())
	}
	s.seen.note(frame)
	s.framer.WriteSettingsAck()
	return s.out.Flush()
}

// listen starts counting what the server sends.
func (s *session) listen() {
	go s.seen.read(s.framer)
}

// request appends the headers of a call to the header block under construction.
func (s *session) request(method string) {
	s.block.Reset()
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		s.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
}

// start opens a stream without ending it.
func (s *session) start(method string) (uint32, error) {
	s.request(method)
	return s.sendBlock(true)
}

// sendBlock opens a stream with the header block, cut into as many frames as it needs.
func (s *session) sendBlock(endHeaders bool) (uint32, error) {
	id := s.nextID
	s.nextID += 2
	first := s.block.Next(frameSize)
	err := s.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: first, EndHeaders: endHeaders && s.block.Len() == 0,
	})
	for err == nil && s.block.Len() > 0 {
		next := s.block.Next(frameSize)
		err = s.framer.WriteContinuation(id, endHeaders && s.block.Len() == 0, next)
	}
	return id, err
}

// call sends a whole unary request.
func (s *session) call(method string, message []byte) (uint32, error) {
	id, err := s.start(method)
	if err != nil {
		return id, err
	}
	if err := s.framer.WriteData(id, true, framed(message)); err != nil {
		return id, err
	}
	return id, s.out.Flush()
}

func framed(message []byte) []byte {
	return append(messagePrefix(uint32(len(message))), message...)
}

func messagePrefix(length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0}, length)
}

// close ends the connection and returns what all reports have in common.
func (s *session) close(r *report) *report {
	s.seen.summarise(r)
	r.add("ms", time.Since(s.started).Milliseconds())
	s.conn.Close()
	return r
}
