// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault says what is wrong. A list of methods has their names, like "CreateVolume", or "*" for all; Probe and the
// other methods of Identity count too.
type fault struct {
	Hang          []string               `json:"hang,omitempty"`          // never answer; not even a cancelled call ends
	Crash         []string               `json:"crash,omitempty"`         // end the process in the middle of the call
	CrashAfter    []string               `json:"crashAfter,omitempty"`    // the same, when all is done but the answer
	Garbage       []string               `json:"garbage,omitempty"`       // answer with bytes that are no protobuf
	HTTP2Garbage  []string               `json:"http2Garbage,omitempty"`  // write to the connections what is no HTTP/2
	Unimplemented []string               `json:"unimplemented,omitempty"` // answer UNIMPLEMENTED
	SlowMs        map[string]int         `json:"slowMs,omitempty"`        // answer so much later
	Errors        map[string]statusFault `json:"errors,omitempty"`        // answer with this status instead

	NotReady         bool   `json:"notReady,omitempty"`         // Probe says so
	IDs              string `json:"ids,omitempty"`              // of what is made: empty, long (300 bytes), slash, other
	EndlessPages     bool   `json:"endlessPages,omitempty"`     // every page has a next one
	IgnoreMaxEntries bool   `json:"ignoreMaxEntries,omitempty"` // pages have all there is
	HugeBytes        int    `json:"hugeBytes,omitempty"`        // of ballast in each volume that is told
	StreamPauseMs    int    `json:"streamPauseMs,omitempty"`    // before each message of a stream
	StreamMessages   int    `json:"streamMessages,omitempty"`   // how many there are; 3

	// By the names of the specification; null: all that there are.
	Plugin     []string `json:"plugin"`
	Controller []string `json:"controller"`
	Node       []string `json:"node"`
}

type statusFault struct {
	Code    codes.Code `json:"code"`
	Message string     `json:"message"`
}

// faults finds the one in force.
type faults struct {
	file  string
	fixed fault
}

func newFaults(file, text string) (*faults, error) {
	f := &faults{file: file}
	if text == "" {
		return f, nil
	}
	return f, parse([]byte(text), &f.fixed)
}

func parse(text []byte, into *fault) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// now reads the control file again. A file that cannot be read ends the process: a test would be misled by a fault that
// is not in force.
func (f *faults) now() fault {
	current := f.fixed
	if f.file == "" {
		return current
	}
	text, err := os.ReadFile(f.file)
	if errors.Is(err, fs.ErrNotExist) {
		return current
	}
	if err == nil {
		err = parse(text, &current)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "control file %s: %v\n", f.file, err)
		os.Exit(4)
	}
	return current
}

func names(list []string, method string) bool {
	return slices.Contains(list, method) || slices.Contains(list, "*")
}

// guard stands before every method.
type guard struct {
	faults   *faults
	recorder *recorder
	listener *trackedListener
}

func (g *guard) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	g.recorder.add(ctx, method, request)
	current := g.faults.now()
	if err := g.before(current, method); err != nil {
		return nil, err
	}
	reply, err := handler(ctx, request)
	if names(current.CrashAfter, method) {
		os.Exit(3)
	}
	if err == nil && names(current.Garbage, method) {
		return garbage, nil
	}
	return reply, err
}

func (g *guard) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	method := path.Base(info.FullMethod)
	if err := g.before(g.faults.now(), method); err != nil {
		return err
	}
	return handler(server, recordedStream{stream, g.recorder, method})
}

func (g *guard) before(current fault, method string) error {
	if delay := max(current.SlowMs["*"], current.SlowMs[method]); delay > 0 {
		time.Sleep(time.Duration(delay) * time.Millisecond)
	}
	switch {
	case names(current.Hang, method):
		time.Sleep(math.MaxInt64)
	case names(current.Crash, method):
		os.Exit(3)
	case names(current.HTTP2Garbage, method):
		g.listener.spoil()
	case names(current.Unimplemented, method):
		return status.Errorf(codes.Unimplemented, "%s is not implemented", method)
	}
	if wrong, found := current.Errors[method]; found {
		return status.Error(wrong.Code, wrong.Message)
	}
	return nil
}
