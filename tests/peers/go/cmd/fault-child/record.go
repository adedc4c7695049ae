// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// recorder appends a line for each call. Nothing is kept without a file.
type recorder struct {
	lock sync.Mutex
	file *os.File
}

type record struct {
	Method     string              `json:"method"`
	Request    json.RawMessage     `json:"request"` // without secrets
	Secrets    []string            `json:"secrets"` // their keys
	Metadata   map[string][]string `json:"metadata"`
	DeadlineMs int64               `json:"deadlineMs"` // that was left; -1: none
}

func newRecorder(path string) (*recorder, error) {
	if path == "" {
		return &recorder{}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &recorder{file: file}, err
}

func (r *recorder) add(ctx context.Context, method string, request any) {
	message, is := request.(proto.Message)
	if r.file == nil || !is {
		return
	}
	line := record{Method: method, Secrets: []string{}, DeadlineMs: -1}
	clone := proto.Clone(message)
	line.Secrets = append(line.Secrets, takeSecrets(clone.ProtoReflect())...)
	line.Request, _ = protojson.MarshalOptions{UseProtoNames: true}.Marshal(clone)
	line.Metadata, _ = grpcmetadata.FromIncomingContext(ctx)
	if deadline, has := ctx.Deadline(); has {
		line.DeadlineMs = time.Until(deadline).Milliseconds()
	}
	text, err := json.Marshal(line)
	check(err)
	r.lock.Lock()
	defer r.lock.Unlock()
	_, err = r.file.Write(append(text, '\n'))
	check(err)
}

// takeSecrets clears the field and gives its keys, in order.
func takeSecrets(message protoreflect.Message) []string {
	field := message.Descriptor().Fields().ByName("secrets")
	if field == nil || !field.IsMap() {
		return nil
	}
	var keys []string
	message.Get(field).Map().Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key.String())
		return true
	})
	message.Clear(field)
	slices.Sort(keys)
	return keys
}

// recordedStream records the request when it has come.
type recordedStream struct {
	grpc.ServerStream
	recorder *recorder
	method   string
}

func (s recordedStream) RecvMsg(message any) error {
	err := s.ServerStream.RecvMsg(message)
	if err == nil {
		s.recorder.add(s.Context(), s.method, message)
	}
	return err
}
