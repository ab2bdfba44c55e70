package params

import (
	"math"
	"testing"

	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// scheduled has everything that moves with the epoch.
var scheduled = optim.Config{Schedule: "cosine", Epochs: 8, Warmup: 3, ClipNorm: 0.5, LR: 0.1}

func updates(s *Server, n int) []engine.Update {
	var all []engine.Update
	for range n {
		all = append(all, <-s.Updates())
	}
	return all
}

// TestScheduleGoesOn stops at every epoch, in the warm-up and after, and goes on from
// the snapshot: same bits, same rates, same norms.
func TestScheduleGoesOn(t *testing.T) {
	const epochs = 8
	straight := open(t, Config{Blocks: 3, Optim: scheduled})
	for e := range epochs {
		whole(t, straight, e)
	}
	want, rates := bits(snapshot(t, straight)), updates(straight, epochs)
	for stop := 1; stop < epochs; stop++ {
		first := open(t, Config{Blocks: 3, Optim: scheduled})
		for e := range stop {
			whole(t, first, e)
		}
		second := open(t, Config{Blocks: 3, Optim: scheduled, From: snapshot(t, first)})
		for e := stop; e < epochs; e++ {
			whole(t, second, e)
		}
		if got := bits(snapshot(t, second)); got != want {
			t.Errorf("stopped after %d epochs:\n got %s\nwant %s", stop, got, want)
		}
		for i, u := range updates(second, epochs-stop) {
			if w := rates[stop+i]; u.LR != w.LR || u.GradNorm != w.GradNorm || u.Epoch != w.Epoch {
				t.Errorf("stopped after %d epochs: update %+v, want %+v", stop, u, w)
			}
		}
	}
}

// TestUpdatesFollowTheSchedule makes plain SGD steps, which show rate and clipped
// gradient, of a server whose weights start in the middle of a training.
func TestUpdatesFollowTheSchedule(t *testing.T) {
	zero := []*kernels.Mat{kernels.FromSlice(3, 2, make([]float32, 6)), kernels.FromSlice(1, 2, make([]float32, 2))}
	for _, clip := range []float64{0, 2} {
		s := open(t, Config{Blocks: 1, FirstEpoch: 5, Init: zero, Optim: optim.Config{
			Name: "sgd", LR: 1, Schedule: "step", Every: 3, Gamma: 0.5, ClipNorm: clip,
		}})
		p := &engine.Push{Losses: []engine.BlockLoss{{Block: 0}}}
		p.ID.Epoch = 5
		for k, values := range [][]float32{{0, 3, 0, 0, 0, 0}, {4, 0}} { // norm 5
			g := s.Buffer(k)
			for r := range g.Rows {
				copy(g.Row(r), values[r*g.Cols:])
			}
			p.Grads = append(p.Grads, engine.BlockGrad{Param: k, G: g})
		}
		if err := s.Push(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		u, st := <-s.Updates(), snapshot(t, s)
		scale, norm := 1.0, 0.0
		if clip > 0 {
			scale, norm = clip/5.000001, 5
		}
		if u.LR != 0.5 || u.GradNorm != norm {
			t.Errorf("clip %v: update %+v, want rate 0.5 of epoch 5 and norm %v", clip, u, norm)
		}
		for i, want := range []float64{-1.5 * scale, -2 * scale} {
			got := float64([]float32{st.Weights[0].Host[1], st.Weights[1].Host[0]}[i])
			if math.Abs(got-want) > 1e-6 {
				t.Errorf("clip %v: weight %d is %v after a step, want %v", clip, i, got, want)
			}
		}
	}
}

// TestClippedEmptyGradients: where no block adds to a parameter its gradient is zero,
// not what a reused buffer held.
func TestClippedEmptyGradients(t *testing.T) {
	s := open(t, Config{Blocks: 1, Optim: optim.Config{Name: "sgd", LR: 1, ClipNorm: 1e-3}})
	for e := range 4 {
		p := &engine.Push{Losses: []engine.BlockLoss{{Block: 0}}, Grads: []engine.BlockGrad{{Param: 0}, {Param: 1}}}
		p.ID.Epoch = e
		if e == 1 {
			for k := range p.Grads {
				g := s.Buffer(k)
				gradient(g, e, k, 0)
				p.Grads[k].G = g
			}
		}
		before := snapshot(t, s).Weights[0].Host
		if err := s.Push(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		u, after := <-s.Updates(), snapshot(t, s).Weights[0].Host
		moved := 0
		for i := range after {
			if after[i] != before[i] {
				moved++
			}
		}
		if (moved > 0) != (e == 1) || (u.GradNorm > 0) != (e == 1) {
			t.Errorf("epoch %d: %d weights moved, norm %v", e, moved, u.GradNorm)
		}
	}
}
