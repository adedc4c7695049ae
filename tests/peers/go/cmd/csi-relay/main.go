// SPDX-License-Identifier: Apache-2.0

// Command csi-relay passes every unary call to another server, over one connection, as bytes that it never looks at: the
// least that a relay on grpc-go can do. It is the peer of the driver `csi` in the benchmark. With --without it stands for one side of a
// driver that runs as a controller here and as a node there: the other side's services are not there.
package main

import (
	"flag"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"skycap.test/peers/internal/endpoint"
	"skycap.test/peers/internal/rawcodec"
)

type relay struct {
	to      *grpc.ClientConn
	without []string
}

// pass has the deadline and the cancellation of the caller in its context.
func (r relay) pass(_ any, from grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(from)
	for _, service := range r.without {
		if strings.HasPrefix(method, "/"+service+"/") {
			return status.Errorf(codes.Unimplemented, "unknown service %s", service)
		}
	}
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
	without := flag.String("without", "", "services that are not there, by their `names`, with commas")
	flag.Parse()
	conn, err := grpc.NewClient(*to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawcodec.Codec{})))
	endpoint.Check(err)
	listener, err := endpoint.Listen(*listen)
	endpoint.Check(err)
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawcodec.Codec{}), grpc.UnknownServiceHandler(relay{conn, strings.Split(*without, ",")}.pass))
	endpoint.Announce(listener)
	endpoint.Check(server.Serve(listener))
}
