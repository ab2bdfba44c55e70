package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/dataset"
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// PredictOptions say what is computed with.
type PredictOptions struct {
	Model   model.Config // of the checkpoint
	Weights []*kernels.Mat
	Store   *store.Store
	Device  kernels.Device
	Threads int
	// Cluster has the other graph servers, its Connect, Report and Hear left out: each
	// computes its own partition. Model and Weights are then those of server 0. nil: this
	// process has all of the graph.
	Cluster *Cluster
	// Chunk bounds the bytes of rows of others that server 0 holds at a time; 0: 64 MiB.
	Chunk int

	planning *planning // of PlanPrediction; nil: it is one
}

// Rows are some rows of a result: Values.Row(i) is that of vertex Vertices[i], by its
// number in the user's order. They may be read until the function that has got them returns.
type Rows struct {
	Vertices []int32
	Values   *kernels.Mat
}

// Outputs are who takes what PredictRows computes, piece by piece, each vertex once; nil
// where it is not wanted. In a cluster those of server 0 count.
type Outputs struct {
	Logits, Embedding func(Rows) error
}

// PredictRows computes the logits and the embeddings of all vertices, layer by layer over
// the whole graph. Memory is bounded by the partition and Chunk: nobody has all rows of
// a cluster at once.
func PredictRows(ctx context.Context, o PredictOptions, to Outputs) error {
	wanted, err := o.agree(ctx, to)
	if err != nil {
		return err
	}
	o.Model.Sparse = sparse(o.Model.Model, o.Model.Aggregator, o.Store)
	both := wanted.Logits && wanted.Embedding
	if wanted.Embedding {
		alone := o
		if o.Model.Model == "sgc" { // a program in which the propagated features are made
			alone.Model.Sparse, alone.Model.InputDropout, both = false, 0, false
		}
		outputs := []output{{"the embeddings", to.Embedding, func(p *model.Program) (int, error) { return hidden(alone.Model, p) }}}
		if both { // of one pass
			outputs = append(outputs, output{"the logits", to.Logits, logits})
		}
		if err := alone.compute(ctx, "embed", outputs); err != nil {
			return err
		}
	}
	if !wanted.Logits || both {
		return nil
	}
	return o.compute(ctx, "predict on", []output{{"the logits", to.Logits, logits}})
}

// output is a buffer that is wanted of a program, and who takes it.
type output struct {
	name string
	to   func(Rows) error
	pick func(*model.Program) (int, error)
}

func logits(p *model.Program) (int, error) { return p.Output, nil }

// Predict are the logits of all vertices in the user's order, N x classes. It is for one
// process.
func Predict(ctx context.Context, o PredictOptions) (*kernels.Mat, error) {
	var all *kernels.Mat
	err := PredictRows(ctx, o, Outputs{Logits: o.whole(&all)})
	return all, err
}

// whole puts all rows into one matrix.
func (o PredictOptions) whole(all **kernels.Mat) func(Rows) error {
	return func(r Rows) error {
		if *all == nil {
			n := o.Store.Meta.Vertices
			*all = kernels.FromSlice(n, r.Values.Cols, make([]float32, n*r.Values.Cols))
		}
		for i, v := range r.Vertices {
			copy((*all).Row(int(v)), r.Values.Row(i))
		}
		return nil
	}
}

// compute runs one pass and gives its outputs. what says in errors what was being done to
// the store.
func (o PredictOptions) compute(ctx context.Context, what string, outputs []output) (err error) {
	st := o.Store
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", what, st.Meta.Name, err)
		}
	}()
	if o.Model.Features != st.Meta.Features || o.Model.Classes != st.Meta.Classes {
		return fmt.Errorf("it has %d features and %d classes, the model was trained on %d and %d: give the data of the run",
			st.Meta.Features, st.Meta.Classes, o.Model.Features, o.Model.Classes)
	}
	prog, err := o.Model.Build()
	if err != nil {
		return err
	}
	bufs := make([]int, len(outputs))
	for i, out := range outputs {
		if bufs[i], err = out.pick(prog); err != nil {
			return err
		}
	}
	walk := slices.ContainsFunc(bufs, func(b int) bool { return !prog.Bufs[b].Const })
	if walk {
		if err := fit(prog.Params, o.Weights); err != nil {
			return err
		}
	}
	at := o.Threads
	if o.planning != nil {
		at = 1
	}
	w, err := newWorkers(o.Device, at)
	if err != nil {
		return err
	}
	defer w.close()
	in, err := newInputs(o.Device, st)
	defer in.close()
	if err != nil {
		return err
	}
	cl := o.Cluster
	ev, err := newEvaluator(in, w, passConfig{
		prog: prog, sparse: o.Model.Sparse, intervals: 4 * o.Threads, latched: cl != nil, part: o.part(ctx, what),
	}, dataset.Split{}, "")
	if err != nil {
		return err
	}
	ev.cluster = cl
	defer ev.pass.close()
	if walk {
		if o.Weights, err = in.putAll(o.Weights); err != nil {
			return err
		}
		if err := o.forward(ctx, w, ev); err != nil {
			return err
		}
	}
	for i, out := range outputs {
		if err := ev.deliver(ctx, st, out.name, bufs[i], o.Chunk, out.to); err != nil {
			return err
		}
	}
	if p := o.planning; p != nil {
		p.done(o.Device, extra{rows: p.rows(ev.pass)})
	}
	return nil
}

// part is this server's share of the graph, nil for all of it. what sets the plans of one
// pass apart from those of another.
func (o PredictOptions) part(ctx context.Context, what string) *graph.Part {
	cl := o.Cluster
	if cl == nil {
		return nil
	}
	return &graph.Part{
		Blocks: cl.Blocks[cl.Group.Rank()], Rank: cl.Group.Rank(),
		Gather: func(key string, mine []byte) ([][]byte, error) { return cl.Group.Gather(ctx, what+": "+key, mine) },
	}
}

// forward runs the pass once.
func (o PredictOptions) forward(ctx context.Context, w *workers, ev *evaluator) error {
	local := backend.NewLocal(o.planning.scratch(o.Device))
	defer local.Close()
	t := &trainer{workers: w, backend: local, eval: ev, cfg: trainerConfig{Partitions: 1}}
	told := ""
	if cl := o.Cluster; cl != nil {
		t.cluster, t.exchange, t.stopped = cl, cl.Exchange, func(reason string) { told = reason }
		t.cfg.Partition, t.cfg.Partitions = cl.Group.Rank(), cl.Group.Size()
		if err := t.listen(); err != nil {
			return err
		}
		defer t.inbox.close()
	}
	err := t.forward(ctx, engine.Weights{Mats: o.Weights})
	if told != "" && ctx.Err() == nil {
		return errors.New("another server was told to stop")
	}
	return err
}

// fit refuses weights that are not those of the program.
func fit(specs []model.ParamSpec, weights []*kernels.Mat) error {
	if len(weights) != len(specs) {
		return fmt.Errorf("%d weights were given for %d parameters", len(weights), len(specs))
	}
	for i, s := range specs {
		if m := weights[i]; m == nil || m.Rows != s.Rows || m.Cols != s.Cols {
			return fmt.Errorf("the weights of %s are not %d x %d", s.Name, s.Rows, s.Cols)
		}
	}
	return nil
}
