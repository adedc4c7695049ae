// SPDX-License-Identifier: Apache-2.0

// Command odd-server is an HTTP/2 gRPC server that breaks the rules on request, to test how a client
// maps what it sees to a status. The last element of the method's path names the behaviour; any other
// method gets the one of --behaviour.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"

	"skycap.test/peers/internal/endpoint"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "`address` to serve: 127.0.0.1:PORT or unix:/path")
	fallback := flag.String("behaviour", "normal", "`name` of the behaviour for methods that name none")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() > 0 || (!isAnswer(*fallback) && greetings[*fallback] == nil) {
		usage()
		os.Exit(2)
	}
	listener, err := endpoint.Listen(*listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	endpoint.Announce(listener)
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go greet(conn, *fallback)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: odd-server [flags]\n\nflags:")
	flag.PrintDefaults()
	fmt.Fprintf(os.Stderr, "\nby method or --behaviour: http-status-NNN %s\nby --behaviour only: %s\n",
		strings.Join(names(answers), " "), strings.Join(names(greetings), " "))
}

// greet handles what goes wrong before any request is seen.
func greet(conn net.Conn, fallback string) {
	defer conn.Close()
	if spoil, odd := greetings[fallback]; odd {
		spoil(conn)
		return
	}
	serve(newSession(conn, fallback))
}
