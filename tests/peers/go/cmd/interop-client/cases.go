// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

type interopCase func(context.Context, *grpc.ClientConn)

var cases = map[string]interopCase{
	"empty_unary":                 onTestService(interop.DoEmptyUnaryCall),
	"large_unary":                 onTestService(interop.DoLargeUnaryCall),
	"client_streaming":            onTestService(interop.DoClientStreaming),
	"server_streaming":            onTestService(interop.DoServerStreaming),
	"ping_pong":                   onTestService(interop.DoPingPong),
	"empty_stream":                onTestService(interop.DoEmptyStream),
	"timeout_on_sleeping_server":  onTestService(interop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          onTestService(interop.DoCancelAfterBegin),
	"cancel_after_first_response": onTestService(interop.DoCancelAfterFirstResponse),
	"status_code_and_message":     onTestService(interop.DoStatusCodeAndMessage),
	"special_status_message":      onTestService(interop.DoSpecialStatusMessage),
	"custom_metadata":             onTestService(interop.DoCustomMetadata),
	"unimplemented_method":        interop.DoUnimplementedMethod,
	"unimplemented_service": func(ctx context.Context, conn *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
	},
}

func onTestService(do func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)) interopCase {
	return func(ctx context.Context, conn *grpc.ClientConn) {
		do(ctx, testgrpc.NewTestServiceClient(conn))
	}
}

func caseNames() []string {
	return slices.Sorted(maps.Keys(cases))
}
