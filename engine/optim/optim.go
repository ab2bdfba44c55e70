package optim

import (
	"fmt"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// State is what an optimiser remembers, in host memory.
type State struct {
	Step int // steps made
	// Slots[k][p] is what Config.Slots()[k] names, for parameter p: a matrix of
	// the parameter's shape, rows packed.
	Slots [][]*kernels.Mat
}

// Optimizer applies steps to the weights of one model. It is not safe for
// concurrent use.
type Optimizer struct {
	cfg   Config
	specs []model.ParamSpec
	dev   kernels.Device
	slots [][]*kernels.Mat // [slot][parameter], on dev
	step  int
	rate  float64 // of the step begun
}

// New is an optimiser with zero moments, or with those of from, which it copies.
// Close gives its memory back.
func New(cfg Config, specs []model.ParamSpec, dev kernels.Device, from *State) (*Optimizer, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o := &Optimizer{cfg: cfg, specs: specs, dev: dev}
	names := cfg.Slots()
	if from != nil && (from.Step < 0 || len(from.Slots) != len(names)) {
		return nil, fmt.Errorf("optimizer: state of step %d with %d slots does not fit %s, which has %d (%v)",
			from.Step, len(from.Slots), cfg.Name, len(names), names)
	}
	for k := range names {
		o.slots = append(o.slots, make([]*kernels.Mat, len(specs)))
		for p, spec := range specs {
			m, err := kernels.AllocFor(dev, kernels.Weights, spec.Rows, spec.Cols)
			if err != nil {
				o.Close()
				return nil, fmt.Errorf("optimizer: %s of %s: %w", names[k], spec.Name, err)
			}
			o.slots[k][p] = m
		}
	}
	if from == nil {
		return o, nil
	}
	o.step = from.Step
	if err := o.load(from); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

func (o *Optimizer) load(from *State) error {
	s, err := o.dev.NewStream()
	if err != nil {
		return fmt.Errorf("optimizer: load state: %w", err)
	}
	defer s.Close()
	for k, name := range o.cfg.Slots() {
		if len(from.Slots[k]) != len(o.specs) {
			return fmt.Errorf("optimizer: load state: %s of %d parameters, the model has %d", name, len(from.Slots[k]), len(o.specs))
		}
		for p, spec := range o.specs {
			m := from.Slots[k][p]
			if m == nil || m.Rows != spec.Rows || m.Cols != spec.Cols {
				return fmt.Errorf("optimizer: load state: %s of %s is not %d x %d", name, spec.Name, spec.Rows, spec.Cols)
			}
			s.Put(o.slots[k][p], Packed(m))
		}
	}
	return s.Wait()
}

// Next begins the next step, that of epoch: each parameter is then applied once. It
// returns the learning rate.
func (o *Optimizer) Next(epoch int) float64 {
	o.step++
	o.rate = o.cfg.Rate(epoch)
	return o.rate
}

// Apply updates w in place from gradient g, both of the shape of parameter p. The
// work is queued on s.
func (o *Optimizer) Apply(s kernels.Stream, p int, w, g *kernels.Mat) {
	decay := float32(o.cfg.Decay(o.specs[p]))
	if o.cfg.Name == "sgd" {
		var m *kernels.Mat
		if len(o.slots) > 0 {
			m = o.slots[0][p]
		}
		s.SGD(w, g, m, kernels.SGD{LR: float32(o.rate), Momentum: float32(o.cfg.Momentum), WeightDecay: decay, Step: o.step})
		return
	}
	s.Adam(w, g, o.slots[0][p], o.slots[1][p], kernels.Adam{
		LR: float32(o.rate), Beta1: float32(o.cfg.Beta1), Beta2: float32(o.cfg.Beta2), Eps: float32(o.cfg.Eps),
		WeightDecay: decay, Decoupled: o.cfg.Name == "adamw", Step: o.step,
	})
}

// Snapshot copies the state into host memory; s is idle before and after.
func (o *Optimizer) Snapshot(s kernels.Stream) (*State, error) {
	st := &State{Step: o.step, Slots: make([][]*kernels.Mat, len(o.slots))}
	for k, mats := range o.slots {
		for _, m := range mats {
			c := kernels.FromSlice(m.Rows, m.Cols, make([]float32, m.Rows*m.Cols))
			s.Get(c.Host, m)
			st.Slots[k] = append(st.Slots[k], c)
		}
	}
	if err := s.Wait(); err != nil {
		return nil, fmt.Errorf("optimizer: copy state: %w", err)
	}
	return st, nil
}

// Close frees the moments. A second Close does nothing.
func (o *Optimizer) Close() {
	for _, mats := range o.slots {
		for _, m := range mats {
			o.dev.Free(m)
		}
	}
	o.slots = nil
}

// Packed is the values of a host matrix, row after row without padding: its own
// memory where it has none.
func Packed(m *kernels.Mat) []float32 {
	if n := m.Rows * m.Cols; m.Stride == m.Cols || n == 0 {
		return m.Host[:n]
	}
	out := make([]float32, 0, m.Rows*m.Cols)
	for r := range m.Rows {
		out = append(out, m.Row(r)...)
	}
	return out
}
