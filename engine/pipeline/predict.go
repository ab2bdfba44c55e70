package pipeline

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/dataset"
	"dorylus/engine/model"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// PredictOptions say what Predict computes with.
type PredictOptions struct {
	Model   model.Config // of the checkpoint
	Weights []*kernels.Mat
	Store   *store.Store
	Device  kernels.Device
	Threads int
}

// Predict are the logits of all vertices in the user's order, N x classes, layer
// by layer over the whole graph.
func Predict(ctx context.Context, o PredictOptions) (*kernels.Mat, error) {
	o.Model.Sparse = sparse(o.Model.Model, o.Model.Aggregator, o.Store)
	return o.forward(ctx, "predict on", func(prog *model.Program) (int, error) { return prog.Output, nil })
}

// forward computes the buffer that pick names for all vertices, in the user's order. what
// says in errors what was being done to the store.
func (o PredictOptions) forward(ctx context.Context, what string, pick func(*model.Program) (int, error)) (*kernels.Mat, error) {
	st := o.Store
	if o.Model.Features != st.Meta.Features || o.Model.Classes != st.Meta.Classes {
		return nil, fmt.Errorf("%s %s: it has %d features and %d classes, the model was trained on %d and %d: give the data of the run",
			what, st.Meta.Name, st.Meta.Features, st.Meta.Classes, o.Model.Features, o.Model.Classes)
	}
	prog, err := o.Model.Build()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, st.Meta.Name, err)
	}
	buf, err := pick(prog)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, st.Meta.Name, err)
	}
	w, err := newWorkers(o.Device, o.Threads)
	if err != nil {
		return nil, err
	}
	defer w.close()
	in := newInputs(o.Device, st)
	defer in.close()
	ev, err := newEvaluator(in, w, passConfig{prog: prog, sparse: o.Model.Sparse, intervals: 4 * o.Threads}, dataset.Split{}, "")
	if err != nil {
		return nil, err
	}
	defer ev.pass.close()
	if !prog.Bufs[buf].Const {
		local := backend.NewLocal(o.Device)
		defer local.Close()
		t := &trainer{workers: w, backend: local, eval: ev}
		if err := t.forward(ctx, engine.Weights{Mats: o.Weights}); err != nil {
			return nil, err
		}
	}
	return userOrder(ev.pass.full[buf], st.Order), nil
}
