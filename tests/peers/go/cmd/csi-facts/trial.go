// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const caseTime = 60 * time.Second

// trial is one run of a case. What it finds wrong ends it with a panic, so that cases read without error handling.
type trial struct {
	*driver
	ctx     context.Context
	name    string
	made    int
	undos   []func() error
	skipped string
}

type failure string

type skipping string

func (t *trial) fail(format string, args ...any) {
	panic(failure(fmt.Sprintf(format, args...)))
}

// skip ends the case: this machine cannot show it.
func (t *trial) skip(why string) {
	panic(skipping(why))
}

// ok fails the case unless err is nil.
func (t *trial) ok(what string, err error) {
	if err != nil {
		t.fail("%s: %v", what, err)
	}
}

// code fails the case unless err has one of the codes.
func (t *trial) code(what string, err error, wanted ...codes.Code) {
	if !slices.Contains(wanted, status.Code(err)) {
		t.fail("%s: got %v (%v), wanted %v", what, status.Code(err), err, wanted)
	}
}

// equal fails the case unless the two are.
func equal[T comparable](t *trial, what string, got, wanted T) {
	if got != wanted {
		t.fail("%s: got %v, wanted %v", what, got, wanted)
	}
}

// that fails the case unless the statement is true.
func (t *trial) that(is bool, format string, args ...any) {
	if !is {
		t.fail("not so: "+format, args...)
	}
}

// later runs when the case is over, the last first.
func (t *trial) later(undo func() error) {
	t.undos = append(t.undos, undo)
}

// unique gives a name that nothing else in this run has.
func (t *trial) unique(what string) string {
	t.made++
	return fmt.Sprintf("%s %s %d", t.name, what, t.made)
}

// path gives a path of its own below the directory for the tests, where nothing is yet.
func (t *trial) path(what string) string {
	place := strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == ':' {
			return '-'
		}
		return r
	}, t.unique(what))
	return filepath.Join(t.dir, place)
}

// directory makes one at a path of its own.
func (t *trial) directory(what string) string {
	path := t.path(what)
	t.ok("make a directory", os.Mkdir(path, 0o755))
	t.later(func() error { return os.RemoveAll(path) })
	return path
}

func show(d *driver, f fact) bool {
	ctx, cancel := context.WithTimeout(context.Background(), caseTime)
	defer cancel()
	t := &trial{driver: d, ctx: ctx, name: f.name}
	why := t.run(func() { f.show(t) })
	for _, undo := range slices.Backward(t.undos) {
		left := t.run(func() { t.ok("cleaning up", undo()) })
		if why == "" {
			why = left
		}
	}
	if why == "" && t.skipped != "" {
		fmt.Printf("skipped %s: %s\n", f.name, t.skipped)
		return true
	}
	if why != "" {
		fmt.Printf("FAILED %s: %s\n", f.name, strings.Join(strings.Fields(why), " "))
		return false
	}
	fmt.Println("ok", f.name)
	return true
}

// run gives the reason for which it failed, or nothing.
func (t *trial) run(part func()) (why string) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			why = string(reason)
		case skipping:
			t.skipped = string(reason)
		default:
			panic(reason)
		}
	}()
	part()
	return ""
}
