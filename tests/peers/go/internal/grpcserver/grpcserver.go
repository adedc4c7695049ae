// SPDX-License-Identifier: Apache-2.0

// Package grpcserver runs a grpc-go server from --listen until SIGTERM or SIGINT.
package grpcserver

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"skycap.test/peers/internal/endpoint"
	"skycap.test/peers/internal/mutualtls"
)

const drainTime = 2 * time.Second

// Main parses the flags, lets register add services, serves, and ends the process. Options that depend on flags must
// look at them when they are used.
func Main(register func(*grpc.Server), options ...grpc.ServerOption) {
	listen := flag.String("listen", "127.0.0.1:0", "`address` to serve: 127.0.0.1:PORT or unix:/path")
	files := mutualtls.RegisterFlags()
	flag.Parse()
	if flag.NArg() > 0 {
		fail(2, fmt.Errorf("unexpected argument %q", flag.Arg(0)))
	}
	creds, err := files.ServerCredentials()
	if err != nil {
		fail(2, err)
	}
	listener, err := endpoint.Listen(*listen)
	if err != nil {
		fail(2, err)
	}
	server := grpc.NewServer(append(options, grpc.Creds(creds))...)
	register(server)
	go drainOnSignal(server)
	endpoint.Announce(listener)
	if err := server.Serve(listener); err != nil {
		fail(1, err)
	}
}

func drainOnSignal(server *grpc.Server) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	time.AfterFunc(drainTime, server.Stop)
	server.GracefulStop()
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(code)
}
