// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	startLimit = 2 * time.Second
	// Longer than any call may take: who waits so long waits in vain.
	callLimit = 30 * time.Second
	// A call that finds another one for the same thing under way is made again so long.
	abortedLimit = 20 * time.Second
)

var errUnanswered = errors.New("unanswered")

// daemon is the process that is killed and started again.
type daemon struct {
	options *options
	socket  string
	log     *os.File
	process *exec.Cmd
	session *session
	kills   int
}

// session is the connection to one life of the daemon.
type session struct {
	conn       *grpc.ClientConn
	identity   csi.IdentityClient
	controller csi.ControllerClient
	node       csi.NodeClient
	killed     atomic.Bool
	impatient  atomic.Bool // clients give up a call now and then
}

func newDaemon(o *options) (*daemon, error) {
	log, err := os.OpenFile(filepath.Join(o.work, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &daemon{options: o, socket: filepath.Join(o.work, "csi.sock"), log: log}, nil
}

func (d *daemon) data() string { return filepath.Join(d.options.work, "data") }

// launch starts the process and waits for nothing.
func (d *daemon) launch() error {
	command := exec.Command(d.options.program, "serve", "--endpoint", "unix://"+d.socket, "--data", d.data(),
		"--backend", d.options.backend, "--pool-size", d.options.poolSize, "--node-id", "storm")
	command.Stdout, command.Stderr = d.log, d.log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return err
	}
	d.process = command
	return nil
}

// start launches the process and tells how long it took until it said that it is ready.
func (d *daemon) start() (time.Duration, error) {
	began := time.Now()
	if err := d.launch(); err != nil {
		return 0, err
	}
	if err := d.connect(began); err != nil {
		return 0, err
	}
	answer, err := call(d.session, d.session.identity.Probe, &csi.ProbeRequest{})
	if err == nil && !answer.GetReady().GetValue() {
		err = errors.New("it is not ready")
	}
	if err != nil {
		return 0, fmt.Errorf("probe of a new daemon: %w", err)
	}
	return time.Since(began), nil
}

func (d *daemon) connect(began time.Time) error {
	for {
		conn, err := net.Dial("unix", d.socket)
		if err == nil {
			conn.Close()
			break
		}
		if time.Since(began) > callLimit {
			return fmt.Errorf("the daemon did not start: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
	conn, err := grpc.NewClient("unix:"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	d.session = &session{conn: conn, identity: csi.NewIdentityClient(conn),
		controller: csi.NewControllerClient(conn), node: csi.NewNodeClient(conn)}
	return nil
}

func (d *daemon) kill() {
	if d.process == nil {
		return
	}
	if d.session != nil {
		d.session.killed.Store(true)
	}
	d.process.Process.Kill()
	d.process.Wait()
	d.awaitSilence()
	d.process = nil
	d.kills++
}

// awaitSilence waits until the socket accepts nothing any more. A child that the process had forked when it was killed has the
// listening socket for a moment longer: whoever connects then takes it for the next process.
func (d *daemon) awaitSilence() {
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", d.socket)
		if err != nil {
			return
		}
		conn.Close()
	}
}

// forget closes the connection to a daemon that has ended.
func (d *daemon) forget() {
	if d.session != nil {
		d.session.conn.Close()
		d.session = nil
	}
}

// stop ends the daemon as an administrator would.
func (d *daemon) stop() error {
	d.forget()
	d.process.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(callLimit, func() { d.process.Process.Kill() })
	defer timer.Stop()
	err := d.process.Wait()
	d.process = nil
	if err != nil {
		return fmt.Errorf("the daemon ended badly after SIGTERM: %w", err)
	}
	return nil
}

type method[Q, A any] func(context.Context, Q, ...grpc.CallOption) (A, error)

// call makes one call. One that was lost with the daemon gives errUnanswered.
func call[Q, A any](s *session, rpc method[Q, A], request Q) (A, error) {
	return callWithin(s, callLimit, rpc, request)
}

// callInHurry makes one call that the client may give up, while the daemon goes on with it.
func callInHurry[Q, A any](s *session, rpc method[Q, A], request Q) (A, error) {
	limit := callLimit
	if s.impatient.Load() && rand.IntN(40) == 0 {
		limit = time.Duration(rand.Int64N(int64(10 * time.Millisecond)))
	}
	return callWithin(s, limit, rpc, request)
}

func callWithin[Q, A any](s *session, limit time.Duration, rpc method[Q, A], request Q) (A, error) {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		answer, err := rpc(ctx, request)
		cancel()
		switch code := status.Code(err); {
		case code == codes.Unavailable && s.killed.Load():
			return answer, errUnanswered
		case code == codes.DeadlineExceeded && limit < callLimit:
			return answer, errUnanswered
		case code != codes.Aborted || time.Since(began) > abortedLimit:
			return answer, err
		}
	}
}

// spread tells the median and the longest of times.
func spread(times []time.Duration) (time.Duration, time.Duration) {
	sorted := slices.Sorted(slices.Values(times))
	if len(sorted) == 0 {
		return 0, 0
	}
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}
