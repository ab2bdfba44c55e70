package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"dorylus/engine"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// runPrediction are the logits of all vertices of st, in the user's order, by the
// model in folder run, with its best or final weights.
func runPrediction(ctx context.Context, c engine.Config, st *store.Store, run, weights string) (m *kernels.Mat, err error) {
	saved, err := loadCheckpoint(run)
	if err != nil {
		return nil, err
	}
	state, err := pipeline.Restore(saved)
	if err != nil {
		return nil, fmt.Errorf("predict with %s: %w", run, err)
	}
	mats, err := state.BestWeights(weights == "final")
	if err != nil {
		return nil, err
	}
	dev, err := openDevice(c.Device)
	if err != nil {
		return nil, fmt.Errorf("--device=%s: %w", c.Device, err)
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	threads := c.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return pipeline.Predict(ctx, pipeline.PredictOptions{
		Model: state.Model, Weights: mats, Store: st, Device: dev, Threads: threads,
	})
}
