package optim

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"codeberg.org/sbinet/npyio"

	"dorylus/engine/model"
	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// twoLayers are the parameters of a GCN of the given widths.
func twoLayers(in, hidden, out int) []model.ParamSpec {
	return []model.ParamSpec{
		{Name: "conv1.lin.weight", Rows: in, Cols: hidden, Init: model.Glorot, Transposed: true, Layer: 1},
		{Name: "conv1.bias", Rows: 1, Cols: hidden, Layer: 1, Bias: true},
		{Name: "conv2.lin.weight", Rows: hidden, Cols: out, Init: model.Glorot, Transposed: true, Layer: 2},
		{Name: "conv2.bias", Rows: 1, Cols: out, Layer: 2, Bias: true},
	}
}

// bench opens a device with a stream and checks at the end that all was freed.
func bench(t *testing.T) (kernels.Device, kernels.Stream) {
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
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
	return dev, s
}

// TestFormulas runs random gradients through every optimiser and holds the weights
// against PyTorch's documented formulas in float64.
func TestFormulas(t *testing.T) {
	configs := []Config{
		{Name: "adam"},
		{Name: "adam", WeightDecay: 0.05, Scope: "all", LR: 0.1},
		{Name: "adam", WeightDecay: 0.05, Beta1: 0.5, Beta2: 0.9, Eps: 1e-3},
		{Name: "adamw", WeightDecay: 0.05, Scope: "weights", LR: 0.1},
		{Name: "sgd", LR: 0.1},
		{Name: "sgd", LR: 0.1, WeightDecay: 0.05, Scope: "weights"},
		{Name: "sgd", LR: 0.1, WeightDecay: 0.05, Momentum: 0.9, Scope: "all"},
	}
	specs := twoLayers(5, 4, 3)
	for _, cfg := range configs {
		dev, s := bench(t)
		o, err := New(cfg, specs, dev, nil)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(7, 7))
		w := make([]*kernels.Mat, len(specs))
		want := make([][]float64, len(specs))
		m, v := make([][]float64, len(specs)), make([][]float64, len(specs))
		for p, spec := range specs {
			n := spec.Rows * spec.Cols
			w[p] = kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, n))
			want[p], m[p], v[p] = make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range n {
				w[p].Host[i] = float32(rng.NormFloat64())
				want[p][i] = float64(w[p].Host[i])
			}
		}
		for step := 1; step <= 20; step++ {
			o.Next(step - 1)
			for p, spec := range specs {
				g := kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols))
				for i := range g.Host {
					g.Host[i] = float32(rng.NormFloat64())
					formula(cfg.WithDefaults(), decays(cfg, spec), step, float64(g.Host[i]), &want[p][i], &m[p][i], &v[p][i])
				}
				o.Apply(s, p, w[p], g)
			}
			if err := s.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for p, spec := range specs {
			for i, x := range w[p].Host {
				if d := math.Abs(float64(x) - want[p][i]); !(d <= 1e-5*max(1, math.Abs(want[p][i]))) {
					t.Fatalf("%+v: %s[%d] is %v after 20 steps, want %v", cfg, spec.Name, i, x, want[p][i])
				}
			}
		}
		o.Close()
	}
}

// decays says, apart from Config.Decay, what the scopes are meant to be.
func decays(c Config, p model.ParamSpec) float64 {
	bias := strings.HasSuffix(p.Name, "bias")
	switch c.Scope {
	case "all":
		return c.WeightDecay
	case "weights":
		if !bias {
			return c.WeightDecay
		}
	default:
		if p.Name == "conv1.lin.weight" {
			return c.WeightDecay
		}
	}
	return 0
}

// formula is one step on one value as PyTorch's documentation gives it.
func formula(c Config, decay float64, step int, g float64, w, m, v *float64) {
	switch c.Name {
	case "sgd":
		g += decay * *w
		if c.Momentum != 0 {
			if step == 1 {
				*m = g
			} else {
				*m = c.Momentum**m + g
			}
			g = *m
		}
		*w -= c.LR * g
		return
	case "adamw":
		*w -= c.LR * decay * *w
	case "adam":
		g += decay * *w
	}
	*m = c.Beta1**m + (1-c.Beta1)*g
	*v = c.Beta2**v + (1-c.Beta2)*g*g
	mHat := *m / (1 - math.Pow(c.Beta1, float64(step)))
	vHat := *v / (1 - math.Pow(c.Beta2, float64(step)))
	*w -= c.LR * mHat / (math.Sqrt(vHat) + c.Eps)
}

// TestGoldenFirstStep makes the first Adam step of the reference training run from
// its parameters and gradients.
func TestGoldenFirstStep(t *testing.T) {
	dir := testkit.Shared(t, "golden", "cora_gcn2")
	specs := twoLayers(1433, 16, 7)
	dev, s := bench(t)
	o, err := New(Config{WeightDecay: 5e-4}, specs, dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	o.Next(0)
	for p, name := range []string{"W0", "b0", "W1", "b1"} {
		spec := specs[p]
		w := kernels.FromSlice(spec.Rows, spec.Cols, readNPY(t, dir+"/param_"+name+".npy"))
		o.Apply(s, p, w, kernels.FromSlice(spec.Rows, spec.Cols, readNPY(t, dir+"/grad_"+name+".npy")))
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		want := readNPY(t, dir+"/after1_"+name+".npy")
		var worst, largest float64
		for i := range want {
			worst = max(worst, math.Abs(float64(w.Host[i]-want[i])))
			largest = max(largest, math.Abs(float64(want[i])))
		}
		if !(worst <= 1e-5*largest) {
			t.Errorf("%s: off by %v after a step, largest value %v", name, worst, largest)
		}
	}
}

func readNPY(t *testing.T, path string) []float32 {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := npyio.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if strings.Contains(r.Header.Descr.Type, "f4") {
		var x []float32
		if err := r.Read(&x); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return x
	}
	var x []float64
	if err := r.Read(&x); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	y := make([]float32, len(x))
	for i := range x {
		y[i] = float32(x[i])
	}
	return y
}

// TestStateGoesOn stops after some steps and goes on from the snapshot: same bits.
func TestStateGoesOn(t *testing.T) {
	specs := twoLayers(5, 4, 3)
	for _, cfg := range []Config{
		{Name: "adam"}, {Name: "adamw", WeightDecay: 0.1}, {Name: "sgd", Momentum: 0.9}, {Name: "sgd"},
		{Name: "adam", Schedule: "cosine", Epochs: 9, Warmup: 3}, {Name: "sgd", Schedule: "step", Every: 2},
	} {
		dev, s := bench(t)
		run := func(stops ...int) []float32 {
			var w []*kernels.Mat
			for _, spec := range specs {
				w = append(w, kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols)))
			}
			rng := rand.New(rand.NewPCG(3, 3))
			var state *State
			done := 0
			for _, stop := range stops {
				o, err := New(cfg, specs, dev, state)
				if err != nil {
					t.Fatal(err)
				}
				for ; done < stop; done++ {
					o.Next(done)
					for p, spec := range specs {
						g := kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols))
						for i := range g.Host {
							g.Host[i] = float32(rng.NormFloat64())
						}
						o.Apply(s, p, w[p], g)
					}
				}
				if state, err = o.Snapshot(s); err != nil {
					t.Fatal(err)
				}
				o.Close()
			}
			if state.Step != done {
				t.Fatalf("%s: the state is of step %d after %d", cfg.Name, state.Step, done)
			}
			var all []float32
			for _, m := range w {
				all = append(all, m.Host...)
			}
			return all
		}
		straight, resumed := run(9), run(4, 5, 9)
		for i := range straight {
			if math.Float32bits(straight[i]) != math.Float32bits(resumed[i]) {
				t.Fatalf("%s: value %d is %v without and %v with interruption", cfg.Name, i, straight[i], resumed[i])
			}
		}
	}
}

func TestBadConfigs(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Name: "adagrad"}, `unknown name "adagrad"`},
		{Config{Scope: "some"}, `unknown weight decay scope "some"`},
		{Config{LR: -1}, "learning rate -1"},
		{Config{LR: math.NaN()}, "learning rate NaN"},
		{Config{WeightDecay: -0.1}, "weight decay -0.1"},
		{Config{Momentum: 0.9}, "momentum 0.9 is for sgd only"},
		{Config{Name: "sgd", Momentum: 1}, "momentum 1"},
		{Config{Beta1: 1}, "beta1 1"},
		{Config{Beta2: 0.999999999}, "beta2 0.999999999"},
		{Config{Eps: -1}, "eps -1"},
		{Config{Schedule: "plateau"}, `unknown schedule "plateau"`},
		{Config{Schedule: "cosine"}, "cosine schedule over 0 epochs with a warm-up of 0"},
		{Config{Schedule: "cosine", Epochs: 5, Warmup: 5}, "over 5 epochs with a warm-up of 5"},
		{Config{Schedule: "step"}, "every 0 epochs"},
		{Config{Schedule: "step", Every: 3, Gamma: -1}, "gamma -1"},
		{Config{Schedule: "exponential", Gamma: math.Inf(1)}, "gamma +Inf"},
		{Config{Schedule: "exponential", Every: 3}, `a step of 3 epochs is not for schedule "exponential"`},
		{Config{Gamma: 0.5}, `gamma 0.5 is not for schedule ""`},
		{Config{Warmup: -1}, "warm-up of -1 epochs"},
		{Config{ClipNorm: -1}, "gradient norm -1"},
		{Config{ClipNorm: math.NaN()}, "gradient norm NaN"},
	} {
		err := c.cfg.WithDefaults().Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	if err := (Config{Name: "x", Scope: "y", LR: -1}).WithDefaults().Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three problems are reported as %v", err)
	}
}

// TestForeignState refuses a state of another optimiser or model.
func TestForeignState(t *testing.T) {
	dev, s := bench(t)
	specs := twoLayers(5, 4, 3)
	o, err := New(Config{}, specs, dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	state, err := o.Snapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
	if _, err := New(Config{Name: "sgd"}, specs, dev, state); err == nil || !strings.Contains(err.Error(), "2 slots") {
		t.Errorf("Adam's state for SGD: %v", err)
	}
	if _, err := New(Config{}, twoLayers(5, 8, 3), dev, state); err == nil || !strings.Contains(err.Error(), "conv1.lin.weight is not 5 x 8") {
		t.Errorf("the state of a narrower model: %v", err)
	}
	if _, err := New(Config{}, specs[:2], dev, state); err == nil || !strings.Contains(err.Error(), "4 parameters") {
		t.Errorf("the state of a deeper model: %v", err)
	}
}
