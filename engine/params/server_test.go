package params

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/task"
	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

var _ engine.Params = (*Server)(nil)

// small is a model of a weight and a bias.
var small = []model.ParamSpec{
	{Name: "conv1.lin.weight", Rows: 3, Cols: 2, Init: model.Glorot, Transposed: true, Layer: 1},
	{Name: "conv1.bias", Rows: 1, Cols: 2, Layer: 1, Bias: true},
}

// open starts a server on a device of its own, which must be empty when the test
// has closed the server.
func open(t *testing.T, cfg Config) *Server {
	t.Helper()
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Device = dev
	if cfg.Specs == nil {
		cfg.Specs = small
	}
	if cfg.Init == nil && cfg.From == nil {
		cfg.Init = InitParams(cfg.Specs, 1)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// gradient fills m with the values of (epoch, param, block), of very different
// sizes, so that the order of a sum shows. Some blocks add nothing.
func gradient(m *kernels.Mat, epoch, param, block int) {
	rng := rand.New(rand.NewPCG(uint64(epoch), uint64(param*1000+block)))
	for r := range m.Rows {
		for c := range m.Row(r) {
			m.Row(r)[c] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(9)-4)))
		}
	}
}

func addsNothing(epoch, param, block int) bool { return (epoch*7+param*3+block)%5 == 0 }

func lossOf(epoch, block int) float64 { return 1 / float64(3+epoch+7*block) }

// push is what the task of some blocks sends.
func push(s *Server, epoch int, params, blocks []int, losses bool) *engine.Push {
	p := &engine.Push{ID: task.ID{Epoch: epoch, Interval: blocks[0]}}
	for _, b := range blocks {
		for _, k := range params {
			var g *kernels.Mat
			if !addsNothing(epoch, k, b) {
				g = s.Buffer(k)
				gradient(g, epoch, k, b)
			}
			p.Grads = append(p.Grads, engine.BlockGrad{Param: k, Block: b, G: g})
		}
		if losses {
			p.Losses = append(p.Losses, engine.BlockLoss{Block: b, Loss: lossOf(epoch, b)})
		}
	}
	return p
}

// summed is what the task of the blocks [lo,hi) sends that adds up below nodes by itself,
// as wide as they are or, at the end of all blocks, cut off there.
func summed(s *Server, epoch int, params []int, lo, hi int, losses bool) *engine.Push {
	p := &engine.Push{ID: task.ID{Epoch: epoch, Interval: lo}}
	runs := Subtrees(lo, hi)
	if n := len(runs); n > 1 && hi == s.cfg.Blocks {
		if _, ok := s.shape.over(runs[n-2].Lo, hi-runs[n-2].Lo); ok {
			runs = append(runs[:n-2], task.Range{Lo: runs[n-2].Lo, Hi: hi})
		}
	}
	for _, run := range runs {
		for _, k := range params {
			if sum := treeGradient(epoch, k, run.Lo, run.Hi); sum == nil {
				p.Grads = append(p.Grads, engine.BlockGrad{Param: k, Block: run.Lo, Span: run.Len()})
			} else {
				g := s.Buffer(k)
				for r := range g.Rows {
					copy(g.Row(r), sum.Row(r))
				}
				p.Grads = append(p.Grads, engine.BlockGrad{Param: k, Block: run.Lo, Span: run.Len(), G: g})
			}
		}
		if losses {
			p.Losses = append(p.Losses, engine.BlockLoss{Block: run.Lo, Span: run.Len(), Loss: treeLoss(epoch, run.Lo, run.Hi)})
		}
	}
	return p
}

// whole pushes all that an epoch needs, block after block.
func whole(t *testing.T, s *Server, epoch int) {
	t.Helper()
	for b := range s.cfg.Blocks {
		if err := s.Push(t.Context(), push(s, epoch, []int{0, 1}, []int{b}, true)); err != nil {
			t.Fatal(err)
		}
	}
}

func snapshot(t *testing.T, s *Server) *State {
	t.Helper()
	st, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// bits is all of a state's values, comparable.
func bits(st *State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "v%d step %d", st.Version, st.Optim.Step)
	for _, mats := range append([][]*kernels.Mat{st.Weights}, st.Optim.Slots...) {
		for _, m := range mats {
			for _, x := range m.Host {
				fmt.Fprintf(&b, " %08x", math.Float32bits(x))
			}
		}
	}
	return b.String()
}

// TestUnreadUpdatesHoldNobodyUp makes many versions before anybody looks.
func TestUnreadUpdatesHoldNobodyUp(t *testing.T) {
	s := open(t, Config{Blocks: 1})
	for e := range 100 {
		whole(t, s, e)
	}
	for e := range 100 {
		if u := <-s.Updates(); u.Epoch != e {
			t.Fatalf("update %d is of epoch %d", e, u.Epoch)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if u, more := <-s.Updates(); more {
		t.Fatalf("after Close there is still %+v", u)
	}
}

// TestPoolsDoNotGrow runs many epochs and counts what was allocated.
func TestPoolsDoNotGrow(t *testing.T) {
	s := open(t, Config{Blocks: 7, Intervals: 1})
	count := func() int { return len(s.mu.all) }
	whole(t, s, 0)
	whole(t, s, 1)
	before := count()
	for e := 2; e < 60; e++ {
		whole(t, s, e)
	}
	if got := count(); got != before {
		t.Errorf("58 more epochs took %d more buffers", got-before)
	}
	if len(s.mu.lent) != 0 || len(s.mu.epochs) != 0 {
		t.Errorf("%d buffers are still lent, %d epochs open", len(s.mu.lent), len(s.mu.epochs))
	}
	if len(s.mu.opened) != 1 {
		t.Errorf("one caller needed %d streams", len(s.mu.opened))
	}
}

// TestSumsAreMadeEagerly: blocks in order need one per level of the tree.
func TestSumsAreMadeEagerly(t *testing.T) {
	const blocks = 64
	s := open(t, Config{Blocks: blocks})
	most := 0
	for b := range blocks {
		if err := s.Push(t.Context(), push(s, 0, []int{0}, []int{b}, false)); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(s.mu.all)-len(s.mu.spare[0]))
	}
	if limit := 2 + 7; most > limit { // two weights, a partial sum per level
		t.Errorf("summing %d blocks in order held %d buffers, want at most %d", blocks, most, limit)
	}
}

// TestGoOn stops after two epochs and goes on from the snapshot: same bits.
func TestGoOn(t *testing.T) {
	straight := open(t, Config{Blocks: 5})
	for e := range 5 {
		whole(t, straight, e)
	}
	first := open(t, Config{Blocks: 5})
	whole(t, first, 0)
	whole(t, first, 1)
	st := snapshot(t, first)
	second := open(t, Config{Blocks: 5, From: st})
	if got := bits(snapshot(t, second)); got != bits(st) {
		t.Errorf("loading a snapshot changed it:\n%s\n%s", bits(st), got)
	}
	for e := 2; e < 5; e++ {
		whole(t, second, e)
	}
	if a, b := bits(snapshot(t, straight)), bits(snapshot(t, second)); a != b {
		t.Errorf("straight and resumed differ:\n%s\n%s", a, b)
	}
}

// TestSnapshotIsOfOneVersion copies while versions are being made.
func TestSnapshotIsOfOneVersion(t *testing.T) {
	const epochs = 60
	want := make([]string, epochs+1)
	s := open(t, Config{Blocks: 2})
	for e := range epochs {
		want[e] = bits(snapshot(t, s))
		whole(t, s, e)
	}
	want[epochs] = bits(snapshot(t, s))
	s = open(t, Config{Blocks: 2})
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range epochs {
			whole(t, s, e)
		}
	})
	for range 200 {
		if st := snapshot(t, s); bits(st) != want[st.Version] {
			t.Errorf("the snapshot of version %d is of no single version", st.Version)
			break
		}
	}
	wg.Wait()
}

// TestCloseInTheMiddle closes while others push and fetch: they get an error or
// their result, nothing is left over, and no goroutine either.
func TestCloseInTheMiddle(t *testing.T) {
	testkit.Leaks(t)
	for seed := range 50 {
		s := open(t, Config{Blocks: 4, Intervals: 4})
		var wg sync.WaitGroup
		for b := range 4 {
			// Buffers are filled before: after Close nobody may touch them.
			var work []*engine.Push
			for e := range 20 {
				work = append(work, push(s, e, []int{0, 1}, []int{b}, true))
			}
			wg.Go(func() {
				for e, p := range work {
					if _, err := s.Fetch(t.Context(), b, e); err != nil {
						return
					}
					if err := s.Push(t.Context(), p); err != nil {
						return
					}
					s.Release(b, e)
				}
			})
		}
		for range seed % 5 {
			<-s.Updates()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
		wg.Wait()
		if _, err := s.Fetch(t.Context(), 0, 0); err == nil {
			t.Error("Fetch works after Close")
		}
		if err := s.Push(t.Context(), &engine.Push{}); err == nil {
			t.Error("Push works after Close")
		}
		if _, err := s.Snapshot(); err == nil {
			t.Error("Snapshot works after Close")
		}
	}
}

func TestCopyOfFetchedWeights(t *testing.T) {
	s := open(t, Config{Blocks: 1})
	w, err := s.Fetch(t.Context(), -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, s, 0)
	mats, err := s.Copy(w)
	if err != nil {
		t.Fatal(err)
	}
	for p, m := range InitParams(small, 1) {
		if !slices.Equal(m.Host, mats[p].Host) {
			t.Errorf("the copy of version 0 has %s %v, want %v", small[p].Name, mats[p].Host, m.Host)
		}
	}
}
