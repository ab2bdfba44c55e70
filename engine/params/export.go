package params

import (
	"fmt"
	"slices"

	"dorylus/engine/ckpt"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// Export is the weights of a model, host matrices by parameter, as a checkpoint
// keeps them: PyG's names, weights out x in where Transposed, biases of one
// dimension.
func Export(specs []model.ParamSpec, mats []*kernels.Mat) []ckpt.Named {
	return export(specs, mats, "")
}

func export(specs []model.ParamSpec, mats []*kernels.Mat, suffix string) []ckpt.Named {
	var out []ckpt.Named
	for p, spec := range specs {
		out = append(out, ckpt.Named{Name: spec.Name + suffix, Shape: shapeOf(spec), Data: slices.Clone(exported(spec, mats[p]))})
	}
	return out
}

// shapeOf is the shape in which a parameter is exported.
func shapeOf(spec model.ParamSpec) []int {
	switch {
	case spec.Shape != nil:
		return spec.Shape
	case spec.Bias:
		return []int{spec.Cols}
	case spec.Transposed:
		return []int{spec.Cols, spec.Rows}
	}
	return []int{spec.Rows, spec.Cols}
}

// Import is Export the other way. The tensors must be those of the model: all, no
// others, each of its shape.
func Import(specs []model.ParamSpec, tensors []ckpt.Named) ([]*kernels.Mat, error) {
	mats, err := imports(specs, tensors, "")
	if err != nil {
		return nil, err
	}
	if len(tensors) != len(specs) {
		return nil, fmt.Errorf("the checkpoint has %d weight tensors, the model %d", len(tensors), len(specs))
	}
	return mats, nil
}

func imports(specs []model.ParamSpec, tensors []ckpt.Named, suffix string) ([]*kernels.Mat, error) {
	var mats []*kernels.Mat
	for _, spec := range specs {
		at := slices.IndexFunc(tensors, func(t ckpt.Named) bool { return t.Name == spec.Name+suffix })
		if at < 0 {
			return nil, fmt.Errorf("the checkpoint has no tensor %s%s", spec.Name, suffix)
		}
		t := tensors[at]
		if want := shapeOf(spec); !slices.Equal(t.Shape, want) || len(t.Data) != spec.Rows*spec.Cols {
			return nil, fmt.Errorf("the checkpoint's tensor %s is of shape %v, the model's of %v", t.Name, t.Shape, want)
		}
		data := slices.Clone(t.Data)
		if spec.Transposed {
			data = transpose(spec.Cols, spec.Rows, data)
		}
		mats = append(mats, kernels.FromSlice(spec.Rows, spec.Cols, data))
	}
	return mats, nil
}

// Save puts the state into a checkpoint: epoch, weights, moments and the
// optimiser's settings.
func (st *State) Save(c *ckpt.Checkpoint, specs []model.ParamSpec, cfg optim.Config) {
	c.Epoch, c.Optim, c.OptimStep = st.Version, cfg.WithDefaults(), st.Optim.Step
	c.Weights = Export(specs, st.Weights)
	c.Moments = nil
	for k, slot := range c.Optim.Slots() {
		c.Moments = append(c.Moments, export(specs, st.Optim.Slots[k], "."+slot)...)
	}
}

// FromCheckpoint is the state that a checkpoint holds, for a model of these
// parameters and an optimiser of these settings.
func FromCheckpoint(c *ckpt.Checkpoint, specs []model.ParamSpec, cfg optim.Config) (*State, error) {
	cfg = cfg.WithDefaults()
	st := &State{Version: c.Epoch, Optim: &optim.State{Step: c.OptimStep}}
	var err error
	if st.Weights, err = Import(specs, c.Weights); err != nil {
		return nil, err
	}
	slots := cfg.Slots()
	if !slices.Equal(c.Optim.Slots(), slots) || len(c.Moments) != len(slots)*len(specs) {
		return nil, fmt.Errorf("the checkpoint is of optimizer %s, this run has %s: give --optimizer=%s, or start anew", c.Optim.Name, cfg.Name, c.Optim.Name)
	}
	for _, slot := range slots {
		mats, err := imports(specs, c.Moments, "."+slot)
		if err != nil {
			return nil, err
		}
		st.Optim.Slots = append(st.Optim.Slots, mats)
	}
	return st, nil
}
