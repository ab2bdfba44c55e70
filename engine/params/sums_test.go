package params

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// TestEachGradientCountsOnce pushes the blocks of several epochs from several
// goroutines in random order, in intervals of which some add up by themselves, some twice
// and some long after their epoch, and wants the bits of an orderly run, one update per
// version, and an empty stash.
func TestEachGradientCountsOnce(t *testing.T) {
	seeds := 1500
	if testing.Short() {
		seeds = 200
	}
	const epochs = 3
	orderly := map[int]string{}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		blocks := 1 + rng.IntN(12)
		if orderly[blocks] == "" {
			s := open(t, Config{Blocks: blocks})
			for e := range epochs {
				whole(t, s, e)
			}
			orderly[blocks] = bits(snapshot(t, s))
		}
		s := open(t, Config{Blocks: blocks, Intervals: blocks})
		var jobs []func() *engine.Push
		for e := range epochs {
			for lo, hi := 0, 0; lo < blocks; lo = hi {
				hi = lo + 1 + rng.IntN(blocks-lo)
				sums := rng.IntN(2) == 0
				for _, params := range [][]int{{0}, {1}} { // as two tasks of a program do
					job := func() *engine.Push {
						if sums {
							return summed(s, e, params, lo, hi, params[0] == 1)
						}
						return push(s, e, params, interval(lo, hi), params[0] == 1)
					}
					jobs = append(jobs, job)
					if rng.IntN(3) == 0 {
						jobs = append(jobs, job)
					}
				}
			}
		}
		rng.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		work := make(chan func() *engine.Push)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for job := range work {
					p := job()
					if err := s.Push(t.Context(), p); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		}
		for _, job := range jobs {
			work <- job
		}
		close(work)
		wg.Wait()
		if got := bits(snapshot(t, s)); got != orderly[blocks] {
			t.Fatalf("seed %d, %d blocks:\n got %s\nwant %s", seed, blocks, got, orderly[blocks])
		}
		for e := range epochs {
			u := <-s.Updates()
			if u.Version != e+1 || u.Epoch != e || u.Loss != treeLoss(e, 0, blocks) {
				t.Fatalf("seed %d, %d blocks: update %+v, want version %d of epoch %d with loss %v", seed, blocks, u, e+1, e, treeLoss(e, 0, blocks))
			}
		}
		if got := s.Stash(); len(got) != 1 || got[0] != (VersionInfo{Version: epochs}) {
			t.Fatalf("seed %d: the stash holds %v, want version %d alone", seed, got, epochs)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// treeLoss is the sum over blocks [lo,hi) as the fixed tree makes it, said another
// way: split at the largest power of two below the length.
func treeLoss(epoch, lo, hi int) float64 {
	if hi-lo == 1 {
		return lossOf(epoch, lo)
	}
	half := 1
	for 2*half < hi-lo {
		half *= 2
	}
	return treeLoss(epoch, lo, lo+half) + treeLoss(epoch, lo+half, hi)
}

// interval are the blocks [lo,hi).
func interval(lo, hi int) []int {
	var out []int
	for b := lo; b < hi; b++ {
		out = append(out, b)
	}
	return out
}

// treeGradient is the same for a gradient; nil is zero.
func treeGradient(epoch, param, lo, hi int) *kernels.Mat {
	if hi-lo == 1 {
		if addsNothing(epoch, param, lo) {
			return nil
		}
		m := kernels.FromSlice(small[param].Rows, small[param].Cols, make([]float32, small[param].Rows*small[param].Cols))
		gradient(m, epoch, param, lo)
		return m
	}
	half := 1
	for 2*half < hi-lo {
		half *= 2
	}
	a, b := treeGradient(epoch, param, lo, lo+half), treeGradient(epoch, param, lo+half, hi)
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a
	}
	for i := range b.Host {
		a.Host[i] += b.Host[i]
	}
	return a
}

// TestSubtrees: the runs are those below nodes of any tree, no two of them could be one,
// and they are all of the blocks.
func TestSubtrees(t *testing.T) {
	for hi := range 40 {
		for lo := range hi + 1 {
			runs, at := Subtrees(lo, hi), lo
			for i, r := range runs {
				if _, ok := newShape(hi).over(r.Lo, r.Len()); !ok || r.Lo != at {
					t.Fatalf("[%d,%d) is cut into %v: no node is over %v", lo, hi, runs, r)
				}
				if at = r.Hi; i == 0 {
					continue
				}
				if before := runs[i-1]; before.Len() == r.Len() && before.Lo%(2*r.Len()) == 0 {
					t.Fatalf("[%d,%d) is cut into %v: %v and %v are below one node", lo, hi, runs, before, r)
				}
			}
			if at != hi {
				t.Fatalf("[%d,%d) is cut into %v", lo, hi, runs)
			}
		}
	}
}

// TestSubtreesOf: runs are all of the blocks and below nodes of the tree of so many; those
// of the whole graph are one, and there are no more than of Subtrees.
func TestSubtreesOf(t *testing.T) {
	for blocks := 1; blocks < 40; blocks++ {
		s := newShape(blocks)
		for hi := range blocks + 1 {
			for lo := range hi + 1 {
				runs, at := SubtreesOf(lo, hi, blocks), lo
				for _, r := range runs {
					if _, ok := s.over(r.Lo, r.Len()); !ok || r.Lo != at {
						t.Fatalf("[%d,%d) of %d is cut into %v: no node is over %v", lo, hi, blocks, runs, r)
					}
					at = r.Hi
				}
				if at != hi || len(runs) > len(Subtrees(lo, hi)) || lo == 0 && hi == blocks && len(runs) != 1 {
					t.Fatalf("[%d,%d) of %d is cut into %v", lo, hi, blocks, runs)
				}
			}
		}
	}
}

// TestSumsCutInAnotherWay: what has counted in part already is refused, and nothing of it
// is counted again.
func TestSumsCutInAnotherWay(t *testing.T) {
	for says, again := range map[string]func(s *Server) *engine.Push{
		"the gradient of": func(s *Server) *engine.Push { return summed(s, 0, []int{0}, 0, 4, false) },
		"the loss of":     func(s *Server) *engine.Push { return summed(s, 0, nil, 0, 4, true) },
	} {
		s := open(t, Config{Blocks: 8})
		if err := s.Push(t.Context(), push(s, 0, []int{0}, []int{1, 2}, true)); err != nil {
			t.Fatal(err)
		}
		if err := s.Push(t.Context(), again(s)); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "blocks [0,4)") {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
}

// TestGradientSums holds the sums, which plain SGD shows, to the recursive tree.
func TestGradientSums(t *testing.T) {
	for blocks := 1; blocks <= 40; blocks++ {
		s := open(t, Config{Blocks: blocks, Optim: optim.Config{Name: "sgd", LR: 1}, Init: []*kernels.Mat{
			kernels.FromSlice(3, 2, make([]float32, 6)), kernels.FromSlice(1, 2, make([]float32, 2)),
		}})
		whole(t, s, 0)
		st := snapshot(t, s)
		for p, w := range st.Weights {
			var want []float32
			if sum := treeGradient(0, p, 0, blocks); sum != nil {
				want = sum.Host
			}
			if want == nil {
				want = make([]float32, len(w.Host))
			}
			for i, x := range w.Host {
				if x != 0-want[i] {
					t.Fatalf("%d blocks: sum of %s[%d] is %v, want %v", blocks, small[p].Name, i, -x, want[i])
				}
			}
		}
	}
}
