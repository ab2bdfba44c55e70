package params

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/task"
	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

var _ engine.Params = (*Replica)(nil)

func openReplica(t *testing.T, cfg ReplicaConfig) *Replica {
	t.Helper()
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Specs, cfg.Device, cfg.Weights = small, dev, InitParams(small, 1)
	if cfg.Send == nil {
		cfg.Send = func(*Sums) error { return nil }
	}
	r, err := NewReplica(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestReplicaSendsTheLargestSums: of any range of blocks, in any order and with repeats, the
// sums over the fewest subtrees leave, each once, and a server that gets them from several
// replicas makes the bits of one that gets the blocks.
func TestReplicaSendsTheLargestSums(t *testing.T) {
	for blocks := 1; blocks <= 17; blocks++ {
		rng := rand.New(rand.NewPCG(uint64(blocks), 4))
		want := open(t, Config{Blocks: blocks})
		whole(t, want, 0)
		got := open(t, Config{Blocks: blocks})
		cut := rng.IntN(blocks + 1)
		for _, own := range []kernels.Span{{Hi: cut}, {Lo: cut, Hi: blocks}} {
			var roots []string
			r := openReplica(t, ReplicaConfig{Blocks: blocks, Own: own, Intervals: task.Range(own), Send: func(s *Sums) error {
				p := &engine.Push{ID: task.ID{Epoch: s.Epoch}, Losses: s.Losses}
				for _, g := range s.Grads {
					if g.Param == 0 {
						roots = append(roots, fmt.Sprint(g.Block, g.Span))
					}
					if m := g.G; m != nil {
						g.G = got.Buffer(g.Param)
						for i := range m.Rows {
							copy(g.G.Row(i), m.Row(i))
						}
					}
					p.Grads = append(p.Grads, g)
				}
				return got.Push(t.Context(), p)
			}})
			for range 2 {
				for _, i := range rng.Perm(own.Len()) {
					b := own.Lo + i
					p := &engine.Push{ID: task.ID{Interval: b}, Losses: []engine.BlockLoss{{Block: b, Loss: lossOf(0, b)}}}
					for k := range small {
						var m *kernels.Mat
						if !addsNothing(0, k, b) {
							m = r.Buffer(k)
							gradient(m, 0, k, b)
						}
						p.Grads = append(p.Grads, engine.BlockGrad{Param: k, Block: b, G: m})
					}
					if err := r.Push(t.Context(), p); err != nil {
						t.Fatal(err)
					}
				}
			}
			most := 0
			for lo := own.Lo; lo < own.Hi; most++ { // the largest node that begins at lo and ends in own
				n := 1
				for lo%(2*n) == 0 && min(lo+2*n, blocks) <= own.Hi && lo+n < own.Hi {
					n *= 2
				}
				lo += n
			}
			slices.Sort(roots)
			if len(roots) != most || len(slices.Compact(roots)) != most {
				t.Errorf("%d blocks, own %v: sums over %v were sent, want %d", blocks, own, roots, most)
			}
		}
		if a, b := bits(snapshot(t, got)), bits(snapshot(t, want)); a != b {
			t.Errorf("%d blocks, cut at %d:\n got %s\nwant %s", blocks, cut, a, b)
		}
	}
}

// TestReplicaKeepsWhatAnEvaluationMayWant: a version stays until the update after it has
// been taken.
func TestReplicaKeepsWhatAnEvaluationMayWant(t *testing.T) {
	r := openReplica(t, ReplicaConfig{Blocks: 1, Own: kernels.Span{Hi: 1}, Intervals: task.Range{Lo: 5, Hi: 6}, Version: 3})
	for v := 4; v <= 6; v++ {
		w := InitParams(small, uint64(v))
		if err := r.Install(w, engine.Update{Version: v, Epoch: v - 1}); err != nil {
			t.Fatal(err)
		}
	}
	if w, err := r.Fetch(t.Context(), 5, 3); err != nil || w.Version != 6 {
		t.Errorf("an interval gets version %d, want the newest: %v", w.Version, err)
	}
	for v := 4; v <= 6; v++ {
		if u := <-r.Updates(); u.Version != v {
			t.Fatalf("update %+v, want version %d", u, v)
		}
		w, err := r.Fetch(t.Context(), -1, v-1)
		if err != nil || w.Version != v {
			t.Fatalf("the evaluation after epoch %d gets version %d: %v", v-1, w.Version, err)
		}
		if host, err := r.Copy(w); err != nil || !slices.Equal(host[0].Host, InitParams(small, uint64(v))[0].Host) {
			t.Errorf("version %d has other weights: %v", v, err)
		}
		r.Release(-1, v-1)
	}
	r.Release(5, 3)
	for _, c := range []struct {
		want string
		call func() error
	}{
		{"late repeat", func() error { _, err := r.Fetch(t.Context(), 5, 3); return err }},
		{"version 2 is not kept", func() error { _, err := r.Fetch(t.Context(), -1, 1); return err }},
		{"interval 4, this graph server", func() error { _, err := r.Fetch(t.Context(), 4, 9); return err }},
		{"version 9 comes after 6", func() error { return r.Install(InitParams(small, 1), engine.Update{Version: 9}) }},
		{"blocks [1,2) of 1", func() error { return r.Push(t.Context(), &engine.Push{Losses: []engine.BlockLoss{{Block: 1}}}) }},
		{"gradient of parameter 2 of 2", func() error { return r.Push(t.Context(), &engine.Push{Grads: []engine.BlockGrad{{Param: 2}}}) }},
		{"not from Buffer", func() error {
			m := kernels.FromSlice(1, 2, make([]float32, 2))
			return r.Push(t.Context(), &engine.Push{ID: task.ID{Epoch: 6}, Grads: []engine.BlockGrad{{Param: 1, G: m}}})
		}},
	} {
		if err := c.call(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestReplicaFails: all calls say why, and Updates ends.
func TestReplicaFails(t *testing.T) {
	testkit.Leaks(t)
	r := openReplica(t, ReplicaConfig{Blocks: 1, Own: kernels.Span{Hi: 1}, Intervals: task.Range{Hi: 1}})
	why := fmt.Errorf("the network is gone")
	r.Fail(why)
	if _, more := <-r.Updates(); more {
		t.Error("there is an update")
	}
	if _, err := r.Fetch(t.Context(), 0, 0); err != why {
		t.Errorf("Fetch: %v", err)
	}
	if err := r.Push(t.Context(), &engine.Push{}); err != why {
		t.Errorf("Push: %v", err)
	}
}
