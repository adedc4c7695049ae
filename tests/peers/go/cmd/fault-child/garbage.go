// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that rawCodec stands before
	"google.golang.org/grpc/mem"
)

// rawReply goes out as it is, instead of as protobuf.
type rawReply []byte

// garbage is a field of a kind that there is not, and then more bytes than there are.
var garbage = rawReply{0x0f, 0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f, 'x'}

// rawCodec is that of protobuf, but for rawReply.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(value any) (mem.BufferSlice, error) {
	if raw, is := value.(rawReply); is {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return encoding.GetCodecV2("proto").Marshal(value)
}

func (rawCodec) Unmarshal(data mem.BufferSlice, into any) error {
	return encoding.GetCodecV2("proto").Unmarshal(data, into)
}

// trackedListener knows its connections, so that they can be spoiled.
type trackedListener struct {
	net.Listener
	lock sync.Mutex
	open map[net.Conn]bool
}

type trackedConn struct {
	net.Conn
	listener *trackedListener
}

func (l *trackedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.open == nil {
		l.open = map[net.Conn]bool{}
	}
	l.open[conn] = true
	return trackedConn{conn, l}, nil
}

func (c trackedConn) Close() error {
	c.listener.lock.Lock()
	delete(c.listener.open, c.Conn)
	c.listener.lock.Unlock()
	return c.Conn.Close()
}

// spoil writes a frame of 16 MiB, of a kind that there is not, and less than that behind it.
func (l *trackedListener) spoil() {
	l.lock.Lock()
	defer l.lock.Unlock()
	for conn := range l.open {
		conn.Write([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xffthis is no HTTP/2"))
	}
}
