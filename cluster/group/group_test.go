package group_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/clustertest"
	"dorylus/cluster/group"
	"dorylus/cluster/node"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/testkit"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func groups(c *clustertest.Cluster) []engine.Group {
	var gs []engine.Group
	for _, n := range c.Nodes {
		gs = append(gs, n.Group())
	}
	return gs
}

func locals(n int) []engine.Group {
	var gs []engine.Group
	for _, l := range group.NewLocal(n) {
		gs = append(gs, l)
	}
	return gs
}

// part is what a server gives under a key.
func part(rank, round int) []byte {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(round)))
	n := []int{0, 1, 100, 3000, 2<<20 + 17}[r.IntN(5)]
	unit := make([]byte, 61)
	for i := range unit {
		unit[i] = byte(r.Uint32())
	}
	return bytes.Repeat(unit, n/len(unit)+1)[:n]
}

// gather has all gather and collect some rounds, two keys at a time.
func gather(ctx context.Context, gs []engine.Group, rounds int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := func(g engine.Group, key string, round int, f func(context.Context, string, []byte) ([][]byte, error), all bool) {
		mine := part(g.Rank(), round)
		got, err := f(ctx, key, mine)
		clear(mine) // the call has kept nothing of it
		switch {
		case err != nil:
			cancel(fmt.Errorf("%d, %s: %w", g.Rank(), key, err))
		case !all && got != nil:
			cancel(fmt.Errorf("%d, %s: got %d parts, want none", g.Rank(), key, len(got)))
		case all && len(got) != len(gs):
			cancel(fmt.Errorf("%d, %s: got %d parts, want %d", g.Rank(), key, len(got), len(gs)))
		case all:
			for rank := range gs {
				if !bytes.Equal(got[rank], part(rank, round)) {
					cancel(fmt.Errorf("%d, %s: part %d has %d bytes that are not what was given (%d)", g.Rank(), key, rank, len(got[rank]), len(part(rank, round))))
				}
				clear(got[rank]) // it is this server's own
			}
		}
	}
	var wg sync.WaitGroup
	for _, g := range gs {
		wg.Go(func() {
			for round := range rounds {
				var two sync.WaitGroup
				two.Go(func() { one(g, fmt.Sprintf("a %d", round), round, g.Gather, true) })
				two.Go(func() { one(g, fmt.Sprintf("b %d", round), round+1000, g.Collect, g.Rank() == 0) })
				two.Wait()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func TestGather(t *testing.T) {
	testkit.Leaks(t)
	check(t, gather(clustertest.Context(t), locals(4), 6))
	check(t, gather(clustertest.Context(t), locals(1), 3))
	for seed := range uint64(3) {
		f := &clustertest.Faults{Seed: seed, CutRate: 0.02, TwiceRate: 0.05, DelayRate: 0.02, Delay: 200 * time.Microsecond, Shuffle: true}
		for _, n := range []int{1, 2, 4} {
			c := clustertest.Start(t, clustertest.Options{Graphs: n, TLS: seed == 0, Faults: f})
			check(t, gather(clustertest.Context(t), groups(c), 6))
		}
		if d := f.Done(); d.Cuts == 0 || d.Twices == 0 {
			t.Errorf("too little trouble: %+v", d)
		}
	}
}

// The first reason reaches all, once.
func TestStop(t *testing.T) {
	testkit.Leaks(t)
	for _, gs := range [][]engine.Group{locals(3), groups(clustertest.Start(t, clustertest.Options{Graphs: 3}))} {
		gs[2].Stop("interrupted")
		first := <-gs[2].Stopped()
		gs[1].Stop("too late")
		gs[0].Stop("too late")
		for rank, g := range gs {
			reason := first
			if rank != 2 {
				reason = <-g.Stopped()
			}
			if reason != "interrupted" {
				t.Errorf("%d stops since %q", rank, reason)
			}
		}
		check(t, gather(clustertest.Context(t), gs, 1)) // all goes on until it is agreed to end
		for rank, g := range gs {
			select {
			case reason := <-g.Stopped():
				t.Errorf("%d hears again: %q", rank, reason)
			default:
			}
		}
	}
}

func TestGatherNamesTheMissing(t *testing.T) {
	testkit.Leaks(t)
	short := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if _, err := locals(3)[0].Gather(short(t), "k", nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "graph server 1 graph server 2") {
		t.Errorf("in a process: %v", err)
	}
	c := clustertest.Start(t, clustertest.Options{Graphs: 3, Tune: func(_ int, c *node.Config) { c.GatherTimeout = 300 * time.Millisecond }})
	gs := groups(c)
	if _, err := gs[0].Gather(short(t), "k", nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `gather "k": graph server 1 at 127.0.0.1:`) {
		t.Errorf("the hub: %v", err)
	}
	// One that is there but does nothing is named to all, in time.
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for rank := range 2 {
		wg.Go(func() { _, errs[rank] = gs[rank].Gather(clustertest.Context(t), "epoch 7", nil) })
	}
	wg.Wait()
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), `awaited: its part of "epoch 7"`) && !strings.Contains(err.Error(), `its part of`) {
			t.Errorf("%d: %v", rank, err)
		}
	}
	<-c.Nodes[2].Down()
}

// Who has left in good order gives nothing more: whoever waits for it is told.
func TestGatherWithoutOneThatLeft(t *testing.T) {
	testkit.Leaks(t)
	wants := func(err error, rank int) {
		t.Helper()
		var p *rpc.PeerError
		if !errors.As(err, &p) || p.Who.Rank != rank || !strings.Contains(err.Error(), "it has left the run") {
			t.Errorf("%v, want an error that says that %d has left", err, rank)
		}
	}
	ls := group.NewLocal(2)
	ls[1].Leave()
	_, err := ls[0].Gather(t.Context(), "k", nil)
	wants(err, 1)

	for _, leaver := range []int{0, 2} {
		c := clustertest.Start(t, clustertest.Options{Graphs: 3})
		gs := groups(c)
		errs := make(chan error, 1)
		go func() {
			_, err := gs[1].Gather(clustertest.Context(t), "k", []byte("x"))
			errs <- err
		}()
		check(t, c.Nodes[leaver].Close())
		if leaver != 0 {
			_, err := gs[0].Gather(clustertest.Context(t), "k", nil)
			wants(err, leaver)
		}
		wants(<-errs, leaver)
	}
}

func TestKeysAreUsedOnce(t *testing.T) {
	testkit.Leaks(t)
	c := clustertest.Start(t, clustertest.Options{Graphs: 2})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Nodes[1].Group().Gather(ctx, "k", nil)
		done <- err
	}()
	// Under a key that is in use for something else the run ends.
	_, err := c.Nodes[0].Group().Collect(clustertest.Context(t), "k", nil)
	if err == nil {
		t.Error("a gather and a collect under one key have met")
	}
	<-done
	cancel()
	if _, err := c.Nodes[0].Group().Gather(t.Context(), strings.Repeat("k", 5000), nil); err == nil || !strings.Contains(err.Error(), "a key of 5000 bytes") {
		t.Errorf("a long key: %v", err)
	}
}
