// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http2"
)

var errHangUp = errors.New("the behaviour ends the connection")

// greetings replace everything that the server does on a connection.
var greetings = map[string]func(net.Conn){
	"close-on-accept": func(net.Conn) {},
	"mute":            func(conn net.Conn) { io.Copy(io.Discard, conn) },
	"http1":           http1,
	"no-settings":     noSettings,
}

func http1(conn net.Conn) {
	io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
	io.Copy(io.Discard, conn)
}

// noSettings sends no SETTINGS frame at all, not even the acknowledgement of the client's.
func noSettings(conn net.Conn) {
	s := newSession(conn, "normal")
	s.noSettings = true
	answerRequests(s)
}

// answers reply to one request whose headers (and body, but for early-answer) have been read.
var answers = map[string]func(s *session, stream uint32) error{
	"normal":                   normal,
	"hang":                     func(*session, uint32) error { return nil },
	"missing-trailers":         missingTrailers,
	"missing-grpc-status":      withTrailers("x-other", "1"),
	"garbage-grpc-status":      withTrailers("grpc-status", "seven"),
	"grpc-status-out-of-range": withTrailers("grpc-status", "4711"),
	"percent-message":          withTrailers("grpc-status", "5", "grpc-message", "caf%C3%A9 %E2%98%BA 100%25"),
	"broken-percent-message":   withTrailers("grpc-status", "5", "grpc-message", "100%zz %C3%28 %"),
	"trailers-only":            trailersOnly,
	"early-answer":             earlyAnswer,
	"wrong-content-type":       wrongContentType,
	"1xx-first":                informationalFirst,
	"two-messages":             withBody([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
	"truncated-message":        withBody([]byte{0, 0, 0, 0, 10, 1, 2, 3}),
	"compressed-flag":          withBody([]byte{1, 0, 0, 0, 0}),
	"no-message":               withBody(nil),
	"huge-length":              hugeLength,
	"rst-cancel":               reset(http2.ErrCodeCancel),
	"rst-refused":              reset(http2.ErrCodeRefusedStream),
	"rst-enhance-your-calm":    reset(http2.ErrCodeEnhanceYourCalm),
	"rst-internal":             reset(http2.ErrCodeInternal),
	"rst-refused-once":         everySecondTime(reset(http2.ErrCodeRefusedStream)),
	"goaway-then-close":        everySecondTime(goAway),
}

var httpStatus = regexp.MustCompile(`^http-status-([2-5][0-9][0-9])$`)

func isAnswer(name string) bool {
	return answers[name] != nil || httpStatus.MatchString(name)
}

func names[V any](table map[string]V) []string {
	return slices.Sorted(maps.Keys(table))
}

// answer needs a name for which isAnswer holds.
func answer(s *session, stream uint32, name string) error {
	if match := httpStatus.FindStringSubmatch(name); match != nil {
		return plainHTTP(s, stream, match[1])
	}
	return answers[name](s, stream)
}

func normal(s *session, stream uint32) error {
	return withTrailers("grpc-status", "0")(s, stream)
}

func begin(s *session, stream uint32) error {
	return s.headers(stream, false, ":status", "200", "content-type", "application/grpc")
}

// withTrailers sends an empty message and then the given trailers.
func withTrailers(pairs ...string) func(*session, uint32) error {
	return func(s *session, stream uint32) error {
		err := errors.Join(begin(s, stream), s.framer.WriteData(stream, false, make([]byte, 5)))
		return errors.Join(err, s.headers(stream, true, pairs...))
	}
}

// withBody sends body, whatever it is, as if all were well.
func withBody(body []byte) func(*session, uint32) error {
	return func(s *session, stream uint32) error {
		err := begin(s, stream)
		if body != nil {
			err = errors.Join(err, s.framer.WriteData(stream, false, body))
		}
		return errors.Join(err, s.headers(stream, true, "grpc-status", "0"))
	}
}

func missingTrailers(s *session, stream uint32) error {
	return errors.Join(begin(s, stream), s.framer.WriteData(stream, true, make([]byte, 5)))
}

func trailersOnly(s *session, stream uint32) error {
	return s.headers(stream, true, ":status", "200", "content-type", "application/grpc",
		"grpc-status", "9", "grpc-message", "only trailers")
}

// earlyAnswer refuses a request before its end, as a server must that has read enough.
func earlyAnswer(s *session, stream uint32) error {
	return errors.Join(trailersOnly(s, stream), s.framer.WriteRSTStream(stream, http2.ErrCodeNo))
}

func wrongContentType(s *session, stream uint32) error {
	return plainHTTP(s, stream, "200")
}

func plainHTTP(s *session, stream uint32, status string) error {
	err := s.headers(stream, false, ":status", status, "content-type", "text/html")
	return errors.Join(err, s.framer.WriteData(stream, true, []byte("<h1>"+status+"</h1>")))
}

func informationalFirst(s *session, stream uint32) error {
	return errors.Join(s.headers(stream, false, ":status", "103", "link", "</x>"), normal(s, stream))
}

// hugeLength announces 2 GiB and leaves the stream open: the client must not wait for them.
func hugeLength(s *session, stream uint32) error {
	body := append([]byte{0, 0x80, 0, 0, 0}, strings.Repeat("x", 1024)...)
	return errors.Join(begin(s, stream), s.framer.WriteData(stream, false, body))
}

func reset(code http2.ErrCode) func(*session, uint32) error {
	return func(s *session, stream uint32) error {
		return s.framer.WriteRSTStream(stream, code)
	}
}

// goAway says that no stream was looked at, so that all of them may be tried again elsewhere.
func goAway(s *session, _ uint32) error {
	return errors.Join(s.framer.WriteGoAway(0, http2.ErrCodeNo, nil), errHangUp)
}

// everySecondTime spoils the first, third, ... such call to this server, so that a retry succeeds.
func everySecondTime(spoil func(*session, uint32) error) func(*session, uint32) error {
	var calls atomic.Int64
	return func(s *session, stream uint32) error {
		if calls.Add(1)%2 == 1 {
			return spoil(s, stream)
		}
		return normal(s, stream)
	}
}
