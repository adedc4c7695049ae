// SPDX-License-Identifier: Apache-2.0

// Package endpoint listens on and connects to the addresses that all test peers
// share: "127.0.0.1:PORT" (port 0: any free one) and "unix:/path".
package endpoint

import (
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"time"
)

// Listen opens addr. A socket file that nobody serves any more is replaced.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix {
		return net.Listen("tcp", addr)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s is in use", addr)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(path)
	}
	return net.Listen("unix", path)
}

// Dial connects to addr within timeout.
func Dial(addr string, timeout time.Duration) (net.Conn, error) {
	if path, isUnix := strings.CutPrefix(addr, "unix:"); isUnix {
		return net.DialTimeout("unix", path, timeout)
	}
	return net.DialTimeout("tcp", addr, timeout)
}

// Announce tells the starter of this program that connections are accepted now.
func Announce(listener net.Listener) {
	name := listener.Addr().String()
	if listener.Addr().Network() == "unix" {
		name = "unix:" + name
	}
	fmt.Println("listening on", name)
}

// Check ends the program if there is an error.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
