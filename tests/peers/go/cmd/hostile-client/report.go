// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// report is the line of key=value pairs that an attack ends with.
type report struct {
	pairs []string
}

func (r *report) add(key string, value any) {
	r.pairs = append(r.pairs, fmt.Sprintf("%s=%v", key, value))
}

// addSending tells how the sending side fared: all went out, the server stopped reading, or it hung up.
func (r *report) addSending(err error) {
	switch {
	case err == nil:
		r.add("sending", "done")
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.add("sending", "blocked")
	default:
		r.add("sending", "broken")
	}
}

func (r *report) String() string {
	return strings.Join(r.pairs, " ")
}
