// SPDX-License-Identifier: Apache-2.0

// Command interop-server serves grpc.testing.TestService as grpc-go implements it.
package main

import (
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // accept and answer gzip
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"skycap.test/peers/internal/grpcserver"
)

func main() {
	grpcserver.Main(func(server *grpc.Server) {
		testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	})
}
