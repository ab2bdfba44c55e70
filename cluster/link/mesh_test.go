package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine/testkit"
)

// exchange has every server send count parcels to every other, and reads all: in order,
// each once.
func (r *rig) exchange(count int, rng func(rank int) *rand.Rand) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var wg sync.WaitGroup
	for rank, m := range r.meshes {
		wg.Go(func() {
			d := rng(rank)
			for n := 1; n <= count; n++ {
				for to := range r.meshes {
					if to == rank {
						continue
					}
					p := &parcel{n: n, chunks: 1 + d.IntN(3), size: d.IntN(2000)}
					if err := m.Send(ctx, to, p); err != nil {
						r.t.Errorf("rank %d sends to %d: %v", rank, to, err)
						return
					}
				}
			}
		})
		wg.Go(func() {
			next := make(map[int]int)
			for range count * (len(r.meshes) - 1) {
				from, p, err := m.Recv(ctx)
				if err != nil {
					r.t.Errorf("rank %d receives, having %v: %v", rank, next, err)
					return
				}
				if next[from]++; p.n != next[from] {
					r.t.Errorf("rank %d gets parcel %d of %d, want %d", rank, p.n, from, next[from])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestParcelsArriveOnceAndInOrder(t *testing.T) {
	for _, c := range []struct {
		n, count         int
		cut, twice, slow float64
		window           int64
	}{
		{2, 2000, 0, 0, 0, 1 << 20},
		{2, 1500, 0.01, 0.05, 0.02, 20 << 10},
		{4, 300, 0.02, 0.1, 0.05, 8 << 10},
		{3, 300, 0.05, 0, 0, 1}, // one at a time
	} {
		seeds, count := uint64(2), c.count
		if testing.Short() {
			seeds, count = 1, count/3
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("n=%d,cut=%g,seed=%d", c.n, c.cut, seed), func(t *testing.T) {
				testkit.Leaks(t)
				f := &trouble{rng: rand.New(rand.NewPCG(seed, 7)), cut: c.cut, twice: c.twice, delay: c.slow}
				r := newRig(t, c.n, func(_ int, cfg *Config[*parcel]) { cfg.Window, cfg.Faults = c.window, f })
				r.ready()
				r.exchange(count, func(rank int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(rank))) })
				var again, repeats, streams int64
				for _, m := range r.meshes {
					for to := range r.meshes {
						o, i := m.Stats(to)
						again, repeats, streams = again+o.Again, repeats+i.Repeats, streams+o.Streams
					}
				}
				pairs := int64(c.n * (c.n - 1))
				if f.cuts > 0 && streams == pairs || f.cuts == 0 && streams != pairs {
					t.Errorf("%d cuts, %d streams for %d pairs", f.cuts, streams, pairs)
				}
				if repeats > again || f.twices > 0 && repeats == 0 {
					t.Errorf("%d messages were sent again, %d came as repeats, %d were sent twice", again, repeats, f.twices)
				}
				r.leave()
			})
		}
	}
}

// A sender may have a window of bytes under way, and waits with more until the reader
// takes some; what waits says for whom.
func TestSendWaitsForAWindow(t *testing.T) {
	testkit.Leaks(t)
	r := newRig(t, 2, func(_ int, c *Config[*parcel]) { c.Window = 10 * (1000 + 64) })
	r.ready()
	for n := 1; n <= 10; n++ {
		check(t, r.meshes[0].Send(t.Context(), 1, &parcel{n, 1, 1000}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := r.meshes[0].Send(ctx, 1, &parcel{11, 1, 1000})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "send parcel 11 to graph server 1 at 127.0.0.1:") {
		t.Fatalf("the eleventh: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- r.meshes[0].Send(t.Context(), 1, &parcel{11, 1, 1000}) }()
	if _, p, err := r.meshes[1].Recv(t.Context()); err != nil || p.n != 1 {
		t.Fatal(p, err)
	}
	check(t, <-done)
	for n := 2; n <= 11; n++ {
		if _, p, err := r.meshes[1].Recv(t.Context()); err != nil || p.n != n {
			t.Fatalf("got %v, %v, want parcel %d", p, err, n)
		}
	}
	o, _ := r.meshes[0].Stats(1)
	if o.Waited < 40*time.Millisecond {
		t.Errorf("waited %v, want about 50ms", o.Waited)
	}
	// One that is larger than the window goes alone.
	check(t, r.meshes[0].Send(t.Context(), 1, &parcel{12, 3, 20000}))
	if _, p, err := r.meshes[1].Recv(t.Context()); err != nil || p.n != 12 || p.chunks != 3 {
		t.Fatal(p, err)
	}
	r.leave()
}

func wantPeer(t *testing.T, err error, rank int, says string) {
	t.Helper()
	var p *rpc.PeerError
	if !errors.As(err, &p) || p.Who.Rank != rank || p.Addr == "" || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want an error that names graph server %d and says %q", err, rank, says)
	}
}

// Who dies is named by all that have links with it, after the time that it may be away.
func TestTheDeadAreNamed(t *testing.T) {
	testkit.Leaks(t)
	r := newRig(t, 3, func(_ int, c *Config[*parcel]) { c.PeerTimeout = 150 * time.Millisecond })
	r.ready()
	r.kill(2)
	for rank := range 2 {
		_, _, err := r.meshes[rank].Recv(t.Context())
		wantPeer(t, err, 2, "")
		wantPeer(t, r.meshes[rank].Send(t.Context(), 2, &parcel{1, 1, 1}), 2, "")
	}
}

func TestWhoTakesNothingIsNamed(t *testing.T) {
	testkit.Leaks(t)
	r := newRig(t, 2, func(_ int, c *Config[*parcel]) { c.StallTimeout, c.Window = 100*time.Millisecond, 100 })
	r.ready()
	check(t, r.meshes[0].Send(t.Context(), 1, &parcel{7, 1, 500}))
	err := r.meshes[0].Send(t.Context(), 1, &parcel{8, 1, 500})
	wantPeer(t, err, 1, "taken nothing for 100ms (awaited: that it takes parcel 7")
}

// Who leaves in good order is missed by nobody: what was sent before is there, what is
// sent to it later is dropped.
func TestLeaving(t *testing.T) {
	testkit.Leaks(t)
	r := newRig(t, 3, nil)
	r.ready()
	for n := 1; n <= 3; n++ {
		check(t, r.meshes[0].Send(t.Context(), 1, &parcel{n, 1, 10}))
	}
	leaving := make(chan error, 1)
	go func() { leaving <- r.meshes[0].Leave(t.Context(), "") }()
	for n := 1; n <= 3; n++ { // it waits until they are taken
		if from, p, err := r.meshes[1].Recv(t.Context()); err != nil || from != 0 || p.n != n {
			t.Fatalf("got %v from %d, %v, want parcel %d of 0", p, from, err, n)
		}
	}
	check(t, <-leaving)
	r.kill(0)
	check(t, r.meshes[1].Send(t.Context(), 0, &parcel{1, 1, 10}))
	check(t, r.meshes[1].Send(t.Context(), 2, &parcel{5, 1, 10}))
	if from, p, err := r.meshes[2].Recv(t.Context()); err != nil || from != 1 || p.n != 5 {
		t.Errorf("got %v from %d, %v", p, from, err)
	}
	check(t, r.meshes[1].Leave(t.Context(), ""))
	r.kill(1)
	if _, _, err := r.meshes[2].Recv(t.Context()); err != io.EOF {
		t.Errorf("when all have left: %v, want EOF", err)
	}
	check(t, r.meshes[2].Leave(t.Context(), ""))
	if _, _, err := r.meshes[2].Recv(t.Context()); err == nil || !strings.Contains(err.Error(), "has left") {
		t.Errorf("after leaving: %v", err)
	}
}

func TestFailuresAreTold(t *testing.T) {
	testkit.Leaks(t)
	r := newRig(t, 2, nil)
	r.ready()
	check(t, r.meshes[0].Leave(t.Context(), "the disk is full"))
	_, _, err := r.meshes[1].Recv(t.Context())
	wantPeer(t, err, 0, "it has failed: the disk is full")
}

func TestReadyNamesTheMissing(t *testing.T) {
	testkit.Leaks(t)
	r := newRig(t, 3, nil)
	r.ready()
	r2 := newRig(t, 3, func(rank int, c *Config[*parcel]) {
		if rank == 1 {
			c.Service = "test.Others" // offers something else
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := r2.meshes[0].Ready(ctx)
	if err == nil || !strings.Contains(err.Error(), "graph server 1 at "+r2.servers[1].Addr()) || strings.Contains(err.Error(), "graph server 2") {
		t.Errorf("%v, want graph server 1 alone to be missing", err)
	}
}

func TestOtherJobsAreRefused(t *testing.T) {
	testkit.Leaks(t)
	for says, tune := range map[string]func(c *Config[*parcel]){
		"job ":   func(c *Config[*parcel]) { c.Job.ID = "other" },
		"lr is ": func(c *Config[*parcel]) { c.Job.Settings = map[string]string{"lr": "0.1", "seed": "1"} },
	} {
		r := newRig(t, 2, func(rank int, c *Config[*parcel]) {
			c.Job.Settings = map[string]string{"lr": "0.2"}
			if rank == 1 {
				tune(c)
			}
		})
		// Whichever is refused first, both say it.
		for rank, m := range r.meshes {
			wantPeer(t, m.Ready(t.Context()), 1-rank, says)
		}
	}
}
