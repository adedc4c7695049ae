// SPDX-License-Identifier: Apache-2.0

// Command connection-load asks a skycap with connections all the time: for each connection some clients ask for the
// capabilities of a volume of it, and now and then make a volume and delete it. After --seconds, or at SIGTERM, it
// prints a line of JSON for each connection: how many calls, how many failed with which code, and how long they took.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const callsPerVolume = 50 // between two volumes that are made and deleted

type figures struct {
	Connection string         `json:"connection"`
	Calls      int            `json:"calls"`
	Failures   map[string]int `json:"failures"`
	First      string         `json:"first,omitempty"` // failure
	P50us      int64          `json:"p50us"`
	P99us      int64          `json:"p99us"`

	lock  sync.Mutex
	times []time.Duration
}

func (f *figures) note(took time.Duration, err error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.Calls++
	f.times = append(f.times, took)
	if err == nil {
		return
	}
	f.Failures[status.Code(err).String()]++
	if f.First == "" {
		f.First = err.Error()
	}
}

func (f *figures) print() {
	slices.Sort(f.times)
	if count := len(f.times); count > 0 {
		f.P50us = f.times[count/2].Microseconds()
		f.P99us = f.times[count*99/100].Microseconds()
	}
	text, _ := json.Marshal(f)
	fmt.Println(string(text))
}

type client struct {
	controller csi.ControllerClient
	figures    *figures
	timeout    time.Duration
	name       string
}

func capabilities() []*csi.VolumeCapability {
	return []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}
}

// isOver tells whether the run has ended, or is so near its end that calls are cut short by that.
func isOver(ctx context.Context) bool {
	end, has := ctx.Deadline()
	return ctx.Err() != nil || has && time.Until(end) < 10*time.Millisecond
}

func (c *client) timed(ctx context.Context, call func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	begin := time.Now()
	err := call(limited)
	if !isOver(ctx) {
		c.figures.note(time.Since(begin), err)
	}
	return err
}

func (c *client) create(ctx context.Context, name string) (id string, err error) {
	err = c.timed(ctx, func(ctx context.Context) error {
		answer, err := c.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name,
			VolumeCapabilities: capabilities(), Parameters: map[string]string{"connection": c.figures.Connection}})
		id = answer.GetVolume().GetVolumeId()
		return err
	})
	return id, err
}

func (c *client) remove(ctx context.Context, id string) {
	c.timed(ctx, func(ctx context.Context) error {
		_, err := c.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		return err
	})
}

func (c *client) run(ctx context.Context) {
	id := ""
	for i := 0; !isOver(ctx); i++ {
		if id == "" {
			id, _ = c.create(ctx, c.name)
			if id == "" {
				time.Sleep(10 * time.Millisecond)
			}
			continue
		}
		c.timed(ctx, func(ctx context.Context) error {
			_, err := c.controller.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: id,
				VolumeCapabilities: capabilities()})
			return err
		})
		if i%callsPerVolume == 0 {
			if passing, err := c.create(ctx, fmt.Sprintf("%s-%d", c.name, i)); err == nil {
				c.remove(ctx, passing)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

func main() {
	endpoint := flag.String("endpoint", "", "`address`: unix:/path")
	names := flag.String("connections", "", "`names`, with commas")
	seconds := flag.Float64("seconds", 0, "how `long`; 0: until SIGTERM")
	clients := flag.Int("clients", 2, "how `many` for each connection")
	timeout := flag.Duration("timeout", 30*time.Second, "of a `call`")
	run := flag.String("run", "load", "`name` that those of volumes begin with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if *seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*seconds*float64(time.Second)))
		defer cancel()
	}
	var all []*figures
	var running sync.WaitGroup
	for _, name := range strings.Split(*names, ",") {
		one := &figures{Connection: name, Failures: map[string]int{}}
		all = append(all, one)
		for i := range *clients {
			connection, err := grpc.NewClient(*endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			c := &client{csi.NewControllerClient(connection), one, *timeout, fmt.Sprintf("%s-%s-%d", *run, name, i)}
			running.Go(func() { c.run(ctx) })
		}
	}
	running.Wait()
	for _, one := range all {
		one.print()
	}
}
