// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
	"time"
)

// times of each kind of call, kept by one client and joined at the end.
type times map[string][]time.Duration

func (t times) measure(kind string, call func() error) error {
	start := time.Now()
	err := call()
	t[kind] = append(t[kind], time.Since(start))
	return err
}

type figures struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
}

func summarise(values []time.Duration) figures {
	slices.Sort(values)
	var sum time.Duration
	for _, value := range values {
		sum += value
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return figures{len(values), us(sum) / float64(len(values)), us(values[len(values)/2]), us(values[len(values)*99/100])}
}

// together lets every client work at the same time and joins their times. The first failure is returned.
func (b *bench) together(work func(client *client, times times) error) error {
	var group sync.WaitGroup
	var lock sync.Mutex
	var first error
	for _, client := range b.clients {
		group.Go(func() {
			own := times{}
			err := work(client, own)
			lock.Lock()
			defer lock.Unlock()
			if first == nil {
				first = err
			}
			for kind, values := range own {
				b.times[kind] = append(b.times[kind], values...)
			}
		})
	}
	group.Wait()
	return first
}

// untilEnd repeats one step of each client for as long as --seconds says.
func (b *bench) untilEnd(step func(client *client, times times, round int) error) error {
	end := time.Now().Add(time.Duration(b.seconds * float64(time.Second)))
	return b.together(func(client *client, times times) error {
		for round := 0; time.Now().Before(end); round++ {
			if err := step(client, times, round); err != nil {
				return err
			}
		}
		return nil
	})
}
