// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/grpc/grpclog"
)

// The interop package reports a failure with a fatal log entry, which would end the process. This
// logger panics instead, in the goroutine of the case, so that one failure costs one case.
type panicLogger struct {
	grpclog.LoggerV2
}

func failPanics() {
	grpclog.SetLoggerV2(panicLogger{grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr)})
}

func (panicLogger) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panicLogger) Fatalln(args ...any)               { panic(fmt.Sprintln(args...)) }
func (panicLogger) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func recovered(run func()) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.New(shortened(fmt.Sprint(reason)))
		}
	}()
	run()
	return nil
}

// Some failures quote a whole message of a quarter of a megabyte.
const maxReason = 400

func shortened(reason string) string {
	line := strings.Join(strings.Fields(strings.TrimPrefix(reason, "[interop]")), " ")
	if len(line) > maxReason {
		return line[:maxReason] + "..."
	}
	return line
}
