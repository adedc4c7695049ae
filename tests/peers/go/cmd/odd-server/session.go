// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// session is one connection. One goroutine reads and answers, so nothing is locked.
type session struct {
	conn       net.Conn
	framer     *http2.Framer
	block      bytes.Buffer
	encoder    *hpack.Encoder
	fallback   string
	noSettings bool
	paths      map[uint32]string // of the streams whose request is not complete
}

func newSession(conn net.Conn, fallback string) *session {
	s := &session{conn: conn, framer: http2.NewFramer(conn, conn), fallback: fallback, paths: map[uint32]string{}}
	s.encoder = hpack.NewEncoder(&s.block)
	s.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.framer.AllowIllegalWrites = true
	return s
}

// serve answers requests until the peer or a behaviour ends the connection.
func serve(s *session) {
	if err := s.framer.WriteSettings(); err != nil {
		return
	}
	answerRequests(s)
}

func answerRequests(s *session) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(s.conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	for {
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return
		}
		if err := s.handle(frame); err != nil {
			return
		}
	}
}

func (s *session) handle(frame http2.Frame) error {
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if !frame.IsAck() && !s.noSettings {
			return s.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			return s.framer.WritePing(true, frame.Data)
		}
	case *http2.MetaHeadersFrame:
		s.paths[frame.StreamID] = frame.PseudoValue("path")
		return s.progress(frame.StreamID, frame.StreamEnded())
	case *http2.DataFrame:
		return s.handleData(frame)
	case *http2.RSTStreamFrame:
		delete(s.paths, frame.StreamID)
	}
	return nil
}

func (s *session) handleData(frame *http2.DataFrame) error {
	if frame.Length > 0 {
		if err := s.framer.WriteWindowUpdate(0, frame.Length); err != nil {
			return err
		}
	}
	if frame.Length > 0 && !frame.StreamEnded() {
		if err := s.framer.WriteWindowUpdate(frame.StreamID, frame.Length); err != nil {
			return err
		}
	}
	return s.progress(frame.StreamID, frame.StreamEnded())
}

// progress answers a stream as soon as its request is complete, or at once where the behaviour says so.
func (s *session) progress(stream uint32, ended bool) error {
	path, waiting := s.paths[stream]
	if !waiting {
		return nil
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if !isAnswer(name) {
		name = s.fallback
	}
	if !ended && name != "early-answer" {
		return nil
	}
	delete(s.paths, stream)
	return answer(s, stream, name)
}

// headers sends one HEADERS frame of name, value pairs.
func (s *session) headers(stream uint32, end bool, pairs ...string) error {
	s.block.Reset()
	for i := 0; i+1 < len(pairs); i += 2 {
		s.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID:      stream,
		BlockFragment: s.block.Bytes(),
		EndHeaders:    true,
		EndStream:     end,
	})
}
