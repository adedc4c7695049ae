// SPDX-License-Identifier: Apache-2.0

// Command oim-relay passes every call, of any kind, to a controller as OIM's registry did: as bytes that it never looks
// at, over a connection that is made for this one call, with mutual TLS on both sides. It is the peer of our registry in
// the benchmark.
package main

import (
	"flag"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"skycap.test/peers/internal/endpoint"
	"skycap.test/peers/internal/mutualtls"
	"skycap.test/peers/internal/rawcodec"
)

type relay struct {
	to    string
	creds credentials.TransportCredentials
}

func (r relay) pass(_ any, caller grpc.ServerStream) error {
	incoming, _ := metadata.FromIncomingContext(caller.Context())
	if len(incoming.Get("controllerid")) != 1 {
		return status.Error(codes.Unimplemented, "no controllerid")
	}
	conn, err := grpc.NewClient(r.to, grpc.WithTransportCredentials(r.creds))
	if err != nil {
		return err
	}
	defer conn.Close()
	method, _ := grpc.MethodFromServerStream(caller)
	controller, err := conn.NewStream(metadata.NewOutgoingContext(caller.Context(), incoming),
		&grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(rawcodec.Codec{}))
	if err != nil {
		return err
	}
	go func() {
		if copyMessages(caller, controller) == io.EOF {
			controller.CloseSend()
		}
	}()
	if header, err := controller.Header(); err == nil {
		caller.SetHeader(header)
	}
	err = copyMessages(controller, caller)
	caller.SetTrailer(controller.Trailer())
	if err == io.EOF {
		return nil
	}
	return err
}

type source interface{ RecvMsg(any) error }
type sink interface{ SendMsg(any) error }

func copyMessages(from source, to sink) error {
	for {
		var message mem.BufferSlice
		if err := from.RecvMsg(&message); err != nil {
			return err
		}
		if err := to.SendMsg(&message); err != nil {
			return err
		}
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "`address` to serve")
	to := flag.String("to", "", "`address` of the controller")
	name := flag.String("to-name", "", "`name` that the controller's certificate must have")
	files := mutualtls.RegisterFlags()
	flag.Parse()
	accepts, err := files.ServerCredentials()
	endpoint.Check(err)
	dials, err := files.ClientCredentials(*name)
	endpoint.Check(err)
	listener, err := endpoint.Listen(*listen)
	endpoint.Check(err)
	server := grpc.NewServer(grpc.Creds(accepts), grpc.ForceServerCodecV2(rawcodec.Codec{}),
		grpc.UnknownServiceHandler(relay{*to, dials}.pass))
	endpoint.Announce(listener)
	endpoint.Check(server.Serve(listener))
}
