// SPDX-License-Identifier: Apache-2.0

// Command interop-client runs grpc-go's own interop cases against a server and prints
// one line for each: "ok CASE" or "FAILED CASE: why". All cases share one connection.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding/gzip"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"skycap.test/peers/internal/mutualtls"
)

const (
	connectTime = 5 * time.Second
	caseTime    = 20 * time.Second
)

func main() {
	files := mutualtls.RegisterFlags()
	name := flag.String("tls-name", "", "`name` that the server's certificate must carry")
	compress := flag.Bool("gzip", false, "compress requests with gzip")
	controller := flag.String("controller", "", "send this `id` as controllerid, for a registry")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() < 2 {
		usage()
		os.Exit(2)
	}
	conn, err := open(flag.Arg(0), files, *name, *compress, *controller)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer conn.Close()
	failPanics()
	failures := 0
	for _, name := range flag.Args()[1:] {
		if err := runCase(conn, name); err != nil {
			fmt.Printf("FAILED %s: %v\n", name, err)
			failures++
		} else {
			fmt.Println("ok", name)
		}
	}
	if failures > 0 {
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: interop-client [flags] ADDR CASE...\n\ncases:", strings.Join(caseNames(), " "))
	fmt.Fprintln(os.Stderr, "\nflags:")
	flag.PrintDefaults()
}

func open(addr string, files *mutualtls.Files, name string, compress bool, controller string) (*grpc.ClientConn, error) {
	creds, err := files.ClientCredentials(name)
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(creds)}
	if compress {
		options = append(options, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	if controller != "" {
		options = append(options, toController(controller)...)
	}
	return grpc.NewClient(addr, options...)
}

// toController adds the header by which a registry knows whom to pass a call to.
func toController(id string) []grpc.DialOption {
	named := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "controllerid", id)
	}
	return []grpc.DialOption{
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return invoke(named(ctx), method, request, reply, conn, options...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			stream grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			return stream(named(ctx), desc, conn, method, options...)
		}),
	}
}

func runCase(conn *grpc.ClientConn, name string) error {
	run, known := cases[name]
	if !known {
		return fmt.Errorf("no such case")
	}
	// Connected first: else timeout_on_sleeping_server would meet its deadline while connecting.
	if err := connect(conn); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), caseTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- recovered(func() { run(ctx, conn) }) }()
	select {
	case err := <-done:
		return err
	case <-time.After(caseTime + time.Second):
		return fmt.Errorf("not finished after %v", caseTime)
	}
}

func connect(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure {
			return connectionError(ctx, conn)
		}
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("no connection to %s after %v", conn.Target(), connectTime)
		}
	}
	return nil
}

// grpc-go tells why it cannot connect only in the error of a call.
func connectionError(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := testgrpc.NewTestServiceClient(conn).EmptyCall(ctx, &testgrpc.Empty{})
	return fmt.Errorf("no connection to %s: %s", conn.Target(), shortened(fmt.Sprint(err)))
}
