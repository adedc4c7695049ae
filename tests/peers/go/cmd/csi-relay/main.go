// SPDX-License-Identifier: Apache-2.0

// Command csi-relay passes every unary call to another server, over one connection, as bytes that it never looks at: the
// least that a relay on grpc-go can do. It is the peer of the driver `csi` in the benchmark.
package main

import (
	"flag"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"skycap.test/peers/internal/endpoint"
)

// rawCodec leaves messages, which are *mem.BufferSlice, as they are on the wire.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(value any) (mem.BufferSlice, error) { return *value.(*mem.BufferSlice), nil }

func (rawCodec) Unmarshal(data mem.BufferSlice, into any) error {
	data.Ref()
	*into.(*mem.BufferSlice) = data
	return nil
}

type relay struct{ to *grpc.ClientConn }

// pass has the deadline and the cancellation of the caller in its context.
func (r relay) pass(_ any, from grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(from)
	incoming, _ := metadata.FromIncomingContext(from.Context())
	var request, reply mem.BufferSlice
	if err := from.RecvMsg(&request); err != nil {
		return err
	}
	var header, trailer metadata.MD
	err := r.to.Invoke(metadata.NewOutgoingContext(from.Context(), incoming), method, &request, &reply,
		grpc.Header(&header), grpc.Trailer(&trailer))
	from.SetTrailer(trailer)
	if err != nil {
		return err
	}
	from.SetHeader(header)
	return from.SendMsg(&reply)
}

func main() {
	listen := flag.String("listen", "", "`address` to serve: unix:/path")
	to := flag.String("to", "", "`address` of the server behind: unix:/path")
	flag.Parse()
	conn, err := grpc.NewClient(*to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	check(err)
	listener, err := endpoint.Listen(*listen)
	check(err)
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(relay{conn}.pass))
	endpoint.Announce(listener)
	check(server.Serve(listener))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
