// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http2"
)

// counts is what the server did so far.
type counts struct {
	pingAcks, settingsAcks int
	dataFrames, dataBytes  int
	finished               int            // streams that the server ended or reset
	statuses, resets       map[string]int // how often which
	goAway                 string
	end                    string // how the connection ended; empty while it is open
	connWindow             int    // what we may still send
	streamWindow           int    // the same for the only stream of an attack that sends data
}

// observer collects counts in one goroutine and lets another wait for them.
type observer struct {
	mu      sync.Mutex
	counts  counts
	changed chan struct{}
}

func newObserver() *observer {
	return &observer{
		counts: counts{
			statuses: map[string]int{}, resets: map[string]int{}, connWindow: 65535, streamWindow: 65535,
		},
		changed: make(chan struct{}, 1),
	}
}

func (o *observer) read(framer *http2.Framer) {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			o.noteEnd(err)
			return
		}
		o.note(frame)
	}
}

func (o *observer) note(frame http2.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.counts
	switch frame := frame.(type) {
	case *http2.PingFrame:
		c.pingAcks += one(frame.IsAck())
	case *http2.SettingsFrame:
		c.settingsAcks += one(frame.IsAck())
		if window, given := frame.Value(http2.SettingInitialWindowSize); given {
			c.streamWindow = int(window)
		}
	case *http2.WindowUpdateFrame:
		c.addWindow(frame)
	case *http2.DataFrame:
		c.dataFrames++
		c.dataBytes += len(frame.Data())
		c.finished += one(frame.StreamEnded())
	case *http2.MetaHeadersFrame:
		c.noteHeaders(frame)
	case *http2.RSTStreamFrame:
		c.resets[frame.ErrCode.String()]++
		c.finished++
	case *http2.GoAwayFrame:
		c.goAway = frame.ErrCode.String()
	}
	o.wake()
}

func (c *counts) addWindow(frame *http2.WindowUpdateFrame) {
	if frame.StreamID == 0 {
		c.connWindow += int(frame.Increment)
	} else {
		c.streamWindow += int(frame.Increment)
	}
}

func (c *counts) noteHeaders(frame *http2.MetaHeadersFrame) {
	c.finished += one(frame.StreamEnded())
	if status := frame.PseudoValue("status"); status != "" && status != "200" {
		c.statuses["http-"+status]++
	}
	for _, field := range frame.RegularFields() {
		if field.Name == "grpc-status" {
			c.statuses[field.Value]++
		}
	}
}

func (o *observer) noteEnd(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		o.counts.end = "open"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		o.counts.end = "closed"
	case errors.Is(err, syscall.ECONNRESET):
		o.counts.end = "reset"
	default:
		o.counts.end = fmt.Sprintf("%q", err)
	}
	o.wake()
}

func (o *observer) wake() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// wait returns when done holds, the connection has ended, or the time is up.
func (o *observer) wait(limit time.Duration, done func(*counts) bool) {
	timeout := time.After(limit)
	for !o.holds(func(c *counts) bool { return c.end != "" || done(c) }) {
		select {
		case <-o.changed:
		case <-timeout:
			return
		}
	}
}

func (o *observer) holds(condition func(*counts) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return condition(&o.counts)
}

func (o *observer) value(of func(*counts) int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return of(&o.counts)
}

func (o *observer) summarise(r *report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.counts
	r.add("data-frames", c.dataFrames)
	r.add("data-bytes", c.dataBytes)
	r.add("status", tally(c.statuses))
	r.add("resets", tally(c.resets))
	r.add("goaway", orNone(c.goAway))
	if c.end == "" {
		c.end = "open"
	}
	r.add("end", c.end)
}

// tally writes {"8": 2, "0": 1} as 0:1,8:2.
func tally(times map[string]int) string {
	var parts []string
	for name, n := range times {
		parts = append(parts, fmt.Sprintf("%s:%d", name, n))
	}
	slices.Sort(parts)
	return orNone(strings.Join(parts, ","))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func pingAcks(c *counts) int     { return c.pingAcks }
func settingsAcks(c *counts) int { return c.settingsAcks }
func finished(c *counts) int     { return c.finished }
func dataBytes(c *counts) int    { return c.dataBytes }

func one(condition bool) int {
	if condition {
		return 1
	}
	return 0
}
