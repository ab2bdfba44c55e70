package pipeline

import (
	"context"
	"fmt"

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
	st := o.Store
	if o.Model.Features != st.Meta.Features || o.Model.Classes != st.Meta.Classes {
		return nil, fmt.Errorf("predict on %s: it has %d features and %d classes, the model was trained on %d and %d: give the data of the run",
			st.Meta.Name, st.Meta.Features, st.Meta.Classes, o.Model.Features, o.Model.Classes)
	}
	o.Model.Sparse = sparse(o.Model.Model, o.Model.Aggregator, st)
	prog, err := o.Model.Build()
	if err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	w, err := newWorkers(o.Device, o.Threads)
	if err != nil {
		return nil, err
	}
	defer w.close()
	in := newInputs(o.Device, st)
	defer in.close()
	ev, err := newEvaluator(in, w, prog, o.Model.Sparse, 4*o.Threads, st, dataset.Split{}, "")
	if err != nil {
		return nil, err
	}
	defer ev.pass.close()
	local := backend.NewLocal(o.Device)
	defer local.Close()
	t := &trainer{workers: w, backend: local, eval: ev}
	return ev.predict(ctx, t, o.Weights, st.Order)
}
