package params

import (
	"math"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

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
