package pserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// net is a model with parameters that are cut between shards, others that are not, and
// running statistics.
var net = []model.ParamSpec{
	{Name: "conv1.lin.weight", Rows: 90, Cols: 13, Init: model.Glorot, Transposed: true, Layer: 1},
	{Name: "conv1.bias", Rows: 1, Cols: 13, Layer: 1, Bias: true},
	{Name: "norm1.running_mean", Rows: 1, Cols: 13, Layer: 1, Bias: true, Stat: true},
	{Name: "conv2.lin.weight", Rows: 211, Cols: 5, Init: model.Glorot, Layer: 2},
	{Name: "conv2.bias", Rows: 1, Cols: 5, Layer: 2, Bias: true},
}

// optims are optimisers with everything that a shard could get wrong.
var optims = []optim.Config{
	{WeightDecay: 5e-4},
	{Name: "adamw", WeightDecay: 0.1, Scope: "all", ClipNorm: 0.5, Schedule: "cosine", Epochs: 8, Warmup: 2},
	{Name: "sgd", Momentum: 0.9, ClipNorm: 1e4},
	{Name: "sgd", LR: 0.1},
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openDevice is where all matrices are.
var openDevice = ref.Open

func device(t testing.TB) kernels.Device {
	t.Helper()
	dev, err := openDevice()
	check(t, err)
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// gradient fills m with the values of (epoch, param, block), of very different sizes, so
// that the order of a sum shows. Some blocks add nothing.
func gradient(m *kernels.Mat, epoch, param, block int) {
	rng := rand.New(rand.NewPCG(uint64(epoch), uint64(param*1000+block)))
	for r := range m.Rows {
		for c := range m.Row(r) {
			m.Row(r)[c] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(9)-4)))
		}
	}
}

func addsNothing(epoch, param, block int) bool { return (epoch*7+param*3+block)%5 == 0 }

// task pushes what a task of one block does: step 0 the first layer's, 1 the second's and
// the loss.
func pushTask(s engine.Params, epoch, block, step int) *engine.Push {
	p := &engine.Push{ID: task.ID{Epoch: epoch, Interval: block, Step: step}}
	for k := range net {
		if net[k].Layer != step+1 {
			continue
		}
		var g *kernels.Mat
		if !addsNothing(epoch, k, block) {
			g = s.Buffer(k)
			gradient(g, epoch, k, block)
		}
		p.Grads = append(p.Grads, engine.BlockGrad{Param: k, Block: block, G: g})
	}
	if step == 1 {
		p.Losses = []engine.BlockLoss{{Block: block, Loss: 1 / float64(3+epoch+7*block)}}
	}
	return p
}

// history is what one process makes of a run: the state at each version, and the updates.
type history struct {
	states  []string
	updates []engine.Update
	mid     *params.State // at version len/2
}

// histories are those made already.
var histories = map[string]*history{}

// alone runs epochs in one params.Server.
func alone(t testing.TB, cfg optim.Config, blocks, epochs int) *history {
	t.Helper()
	dev, err := openDevice()
	check(t, err)
	key := fmt.Sprint(dev.Name(), cfg, blocks, epochs)
	if h := histories[key]; h != nil {
		check(t, dev.Close())
		return h
	}
	s, err := params.New(params.Config{Specs: net, Init: params.InitParams(net, 1), Optim: cfg, Blocks: blocks, Device: dev})
	check(t, err)
	h := &history{}
	for e := range epochs + 1 {
		st, err := s.Snapshot()
		check(t, err)
		h.states = append(h.states, bits(st))
		if e == epochs/2 {
			h.mid = st
		}
		if e == epochs {
			break
		}
		for b := range blocks {
			for step := range 2 {
				check(t, s.Push(t.Context(), pushTask(s, e, b, step)))
			}
		}
		h.updates = append(h.updates, <-s.Updates())
	}
	check(t, s.Close())
	check(t, dev.Close())
	histories[key] = h
	return h
}

// bits is all of a state's values, comparable.
func bits(st *params.State) string {
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

// same says whether an update is the one of one process, but for its time.
func same(a, b engine.Update) bool {
	a.Seconds, b.Seconds = 0, 0
	return a == b
}

// first are the first differing words of two states.
func first(got, want string) string {
	a, b := strings.Fields(got), strings.Fields(want)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("word %d of %d is %s, want %s", i, len(b), a[i], b[i])
		}
	}
	return fmt.Sprintf("%d words, want %d", len(a), len(b))
}

// cuts are n ranges that are [0,blocks), some of them empty if the dice say so.
func cuts(rng *rand.Rand, blocks, n int) []kernels.Span {
	at := make([]int, n+1)
	at[n] = blocks
	for i := 1; i < n; i++ {
		at[i] = rng.IntN(blocks + 1)
	}
	for i := 1; i < n; i++ { // insertion sort of a few numbers
		for k := i; k > 1 && at[k] < at[k-1]; k-- {
			at[k], at[k-1] = at[k-1], at[k]
		}
	}
	spans := make([]kernels.Span, n)
	for i := range spans {
		spans[i] = kernels.Span{Lo: at[i], Hi: at[i+1]}
	}
	return spans
}
