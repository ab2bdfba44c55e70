package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/pipeline"
	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// predict writes what f asks for, by this process or by several.
func (a *app) predict(ctx context.Context, f *predictFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.servers > 0 {
		return a.launchPredict(ctx, f)
	}
	m, err := openModel(f)
	if err != nil {
		return err
	}
	return notPredicted(ctx, a.predictWith(ctx, f, m, nil, ""))
}

// notPredicted is the signal that ended ctx, if one did, else err.
func notPredicted(ctx context.Context, err error) error {
	var s stopped
	if err == nil || ctx.Err() == nil || !errors.As(context.Cause(ctx), &s) {
		return err
	}
	return stoppedError(s, "before the prediction was written", false)
}

// trainedModel is what predict takes from the folder of a run: of a graph server that does
// not lead the settings alone.
type trainedModel struct {
	settings map[string]string
	state    *pipeline.State
}

// openModel reads the run of f.
func openModel(f *predictFlags) (*trainedModel, error) {
	l, err := runLayer(f.run)
	if err != nil {
		return nil, err
	}
	point, err := lastCheckpoint(f.run)
	if err != nil {
		return nil, fmt.Errorf("predict with %s: %w", f.run, err)
	}
	state, err := pipeline.Restore(point)
	if err != nil {
		return nil, fmt.Errorf("predict with %s: %w", f.run, err)
	}
	return &trainedModel{l.values, state}, nil
}

// share gives all servers the settings of server 0's run; m is nil at the others.
func (m *trainedModel) share(ctx context.Context, g engine.Group) (*trainedModel, error) {
	var mine []byte
	var err error
	if m != nil {
		if mine, err = json.Marshal(m.settings); err != nil {
			return nil, err
		}
	}
	all, err := g.Gather(ctx, "settings of the run", mine)
	if err != nil || m != nil {
		return m, err
	}
	m = &trainedModel{}
	if err := json.Unmarshal(all[0], &m.settings); err != nil {
		return nil, fmt.Errorf("settings of the run, from server 0: %w", err)
	}
	return m, nil
}

// predictWith computes and writes what f asks for, with the other graph servers of cl, nil
// if there are none; only the first of them writes. tag is in the names of unfinished files.
func (a *app) predictWith(ctx context.Context, f *predictFlags, m *trainedModel, cl *pipeline.Cluster, tag string) (err error) {
	r, err := apply([]layer{{m.settings, func(string) string { return "run " + f.run }}})
	if err != nil {
		return err
	}
	c := &r.Config
	if err := f.settle(c); err != nil {
		return err
	}
	if c.Mode == "gpu" {
		if err := a.chooseGPUs(c); err != nil {
			return fmt.Errorf("%w; --mode=cpu predicts on this machine's cores", err)
		}
	}
	if cl != nil {
		a.share = cl.Group
	}
	st, err := a.loadData(ctx, c, true)
	if err != nil {
		return err
	}
	defer st.Close()
	opt := pipeline.PredictOptions{Store: st, Threads: c.Threads, Cluster: cl}
	if opt.Threads == 0 {
		opt.Threads = runtime.GOMAXPROCS(0)
	}
	var memory []*spill.Plan
	if c.Mode == "gpu" {
		quiet := *c
		quiet.Progress = "none" // only what is streamed is worth a word
		if memory, err = a.settleMemory(ctx, &quiet, f.planner(c, opt)); err != nil {
			return err
		}
		for _, p := range memory {
			a.note(p.Verdict != spill.Streamed, "%s", p.Brief())
		}
	}
	on, err := a.openDevices(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if a.emulated() {
		a.note(false, "EMULATED, no GPU: %s", on.kernels)
	}
	if memory != nil {
		if err := on.gpus.keepTo(memory); err != nil {
			return err
		}
	}
	if cl != nil {
		opt.Device = on.devices[0]
		cl.Blocks = graph.Partition(st, nil, cl.Group.Size())
		if cl.Group.Rank() > 0 {
			return pipeline.PredictRows(ctx, opt, pipeline.Outputs{})
		}
	}
	opt.Model, opt.Weights = m.state.Model, m.state.BestWeights(f.weights == "final")
	return a.writePrediction(ctx, f, opt, on.devices, tag)
}

// planner plans the memory of a prediction. What is computed with follows from the settings
// of the run, so that each server can plan.
func (f *predictFlags) planner(c *engine.Config, opt pipeline.PredictOptions) memoryPlanner {
	return func(ctx context.Context, by pipeline.Sharing) ([]pipeline.Memory, error) {
		var err error
		if opt.Model, err = pipeline.ModelConfig(c, opt.Store); err != nil {
			return nil, err
		}
		opt.Cluster = nil
		var to pipeline.Outputs
		none := func(pipeline.Rows) error { return nil }
		if f.out != "" {
			to.Logits = none
		}
		if f.embeddings != "" {
			to.Embedding = none
		}
		return pipeline.PlanPrediction(ctx, opt, to, by)
	}
}

// writePrediction computes what f asks for and writes it.
func (a *app) writePrediction(ctx context.Context, f *predictFlags, opt pipeline.PredictOptions, on []kernels.Device, tag string) (err error) {
	st := opt.Store
	var to pipeline.Outputs
	open := func(path string) (*resultFile, error) { return newResultFile(path, tag, st, f.scores) }
	var labels, vectors *resultFile
	if f.out != "" {
		if labels, err = open(f.out); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, labels.close()) }()
		to.Logits = labels.logits
	}
	if f.embeddings != "" {
		if vectors, err = open(f.embeddings); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, vectors.close()) }()
		to.Embedding = vectors.embedding
	}
	if opt.Cluster != nil {
		err = pipeline.PredictRows(ctx, opt, to)
	} else {
		err = pipeline.PredictRowsOn(ctx, opt, on, to)
	}
	if err != nil {
		return err
	}
	n := st.Meta.Vertices
	if labels != nil {
		if err := labels.keep(); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Wrote %s: %d vertices of %s, %d classes, by the %s weights of %s\n", f.out, n, st.Meta.Name, labels.cols, f.weights, f.run)
	}
	if vectors != nil {
		if err := vectors.keep(); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "Wrote %s: the last hidden representation of %d vertices of %s, %d values each, by the %s weights of %s\n",
			f.embeddings, n, st.Meta.Name, vectors.cols, f.weights, f.run)
	}
	return nil
}
