// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// line is what is written down of a request; Milliseconds is the time that the caller gives it.
type line struct {
	Method       string
	Request      json.RawMessage
	Via          []string `json:",omitempty"`
	Milliseconds int64    `json:",omitempty"`
	Ended        string   `json:",omitempty"`
}

// intercept is round every call: it is written down, waits, and fails where the driver lacks it. A call that is given up while it waits is
// written down once more, with how it ended.
func (d *driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	if err := d.write(ctx, method, request, ""); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	select {
	case <-time.After(d.slow[method]):
	case <-ctx.Done():
		d.write(ctx, method, request, ctx.Err().Error())
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if d.lacks(method) {
		return nil, status.Errorf(codes.Unimplemented, "no %s here", method)
	}
	reply, err := d.answer(ctx, request, handler)
	time.Sleep(d.late[method])
	return reply, err
}

// answer has one call at a time.
func (d *driver) answer(ctx context.Context, request any, handler grpc.UnaryHandler) (any, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return handler(ctx, request)
}

func (d *driver) write(ctx context.Context, method string, request any, ended string) error {
	if d.record == "" || method == "Probe" {
		return nil
	}
	body, err := protojson.Marshal(request.(proto.Message))
	if err != nil {
		return err
	}
	entry := line{Method: method, Request: body, Via: metadata.ValueFromIncomingContext(ctx, "skycap-via"), Ended: ended}
	if deadline, found := ctx.Deadline(); found && ended == "" {
		entry.Milliseconds = time.Until(deadline).Milliseconds()
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(d.record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(text, '\n'))
	return err
}
