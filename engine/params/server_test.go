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
	"dorylus/engine/optim"
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

func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		param int
		x     float32
		loss  float64
		want  string
	}{
		{0, nan, 0, "epoch 2: gradient of conv1.lin.weight (layer 1) is not finite: lower --lr or check the features with 'dorylus-engine check'"},
		{1, inf, 0, "epoch 2: gradient of conv1.bias (layer 1) is not finite"},
		{0, 0, math.NaN(), "epoch 2: the loss is not finite: lower --lr"},
		{0, 0, math.Inf(1), "epoch 2: the loss is not finite"},
	} {
		s := open(t, Config{Blocks: 3, Intervals: 3})
		whole(t, s, 0)
		whole(t, s, 1)
		var err error
		for b := range 3 {
			p := push(s, 2, []int{0, 1}, []int{b}, true)
			if b == 2 {
				for _, g := range p.Grads {
					if g.Param == c.param && g.G != nil && c.x != 0 {
						g.G.Row(0)[1] = c.x
					}
				}
				p.Losses[0].Loss += c.loss
			}
			if e := s.Push(t.Context(), p); e != nil && err == nil {
				err = e
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c, err, c.want)
		}
		if got := s.Stash(); got[len(got)-1].Version != 2 {
			t.Errorf("%v: the newest version is %d, want 2", c, got[len(got)-1].Version)
		}
		if _, e := s.Fetch(t.Context(), 0, 2); e == nil || e.Error() != err.Error() {
			t.Errorf("%v: Fetch after the failure says %v", c, e)
		}
	}
}

func TestBadPushes(t *testing.T) {
	s := open(t, Config{Blocks: 2})
	good := s.Buffer(1)
	for _, c := range []struct {
		p    engine.Push
		want string
	}{
		{engine.Push{Grads: []engine.BlockGrad{{Param: 2}}}, "parameter 2 of 2"},
		{engine.Push{Grads: []engine.BlockGrad{{Param: -1}}}, "parameter -1 of 2"},
		{engine.Push{Grads: []engine.BlockGrad{{Block: 2}}}, "block 2 of 2"},
		{engine.Push{Grads: []engine.BlockGrad{{Block: 1, Span: 2}}}, "blocks [1,3) of 2"},
		{engine.Push{Losses: []engine.BlockLoss{{Span: 3}}}, "blocks [0,3) of 2"},
		{engine.Push{Grads: []engine.BlockGrad{{Param: 0, G: good}}}, "is 1 x 2, want 3 x 2"},
		{engine.Push{Losses: []engine.BlockLoss{{Block: -1}}}, "loss of block -1 of 2"},
	} {
		if err := s.Push(t.Context(), &c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
	}
	// The refused ones have counted for nothing.
	whole(t, s, 0)
	if got := s.Stash(); got[0].Version != 1 {
		t.Errorf("the stash is %v after an epoch", got)
	}
	if err := s.Push(t.Context(), &engine.Push{ID: task.ID{Epoch: 1}, Grads: []engine.BlockGrad{{Param: 1, Block: 0, G: good}}}); err != nil {
		t.Error(err)
	}
	// Handed over again under another block, its memory would count twice.
	err := s.Push(t.Context(), &engine.Push{ID: task.ID{Epoch: 1}, Grads: []engine.BlockGrad{{Param: 1, Block: 1, G: good}}})
	if err == nil || !strings.Contains(err.Error(), "handed over before") {
		t.Errorf("a matrix handed over twice: %v", err)
	}
}

func TestBadConfigs(t *testing.T) {
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	init := InitParams(small, 1)
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Specs: small, Init: init, Device: dev}, "0 blocks"},
		{Config{Specs: small, Init: init, Blocks: 1}, "no device"},
		{Config{Specs: small, Blocks: 1, Device: dev}, "exactly one"},
		{Config{Specs: small, Init: init[:1], Blocks: 1, Device: dev}, "1 parameters, the model has 2"},
		{Config{Specs: small, Init: []*kernels.Mat{init[0], init[0]}, Blocks: 1, Device: dev}, "conv1.bias are not 1 x 2"},
		{Config{Specs: small, Init: init, Blocks: 1, Device: dev, FirstEpoch: -1}, "first epoch -1"},
		{Config{Specs: small, From: &State{Version: 3, Weights: init}, FirstEpoch: 2, Blocks: 1, Device: dev}, "version 3"},
		{Config{Specs: small, Init: init, Blocks: 1, Device: dev, Optim: optim.Config{Name: "x"}}, `"x"`},
	} {
		if s, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
			if s != nil {
				s.Close()
			}
		}
	}
	if err := dev.Close(); err != nil {
		t.Errorf("refused servers left something behind: %v", err)
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
