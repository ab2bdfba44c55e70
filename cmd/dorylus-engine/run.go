package main

import (
	"context"
	"errors"
	"fmt"

	"dorylus/csrc/metis"
	"dorylus/engine"
	"dorylus/engine/order"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
)

// partitioner is METIS, nil where it is not linked.
var partitioner = func() order.Partitioner {
	if !metis.Linked() {
		return nil
	}
	return metis.Partition
}()

// runTraining is run number run of c, which is complete and valid, on st. Its
// seed, split and folder are those of c. All that happens goes to l. A ctx that
// ends is not an error: the run then ends with the reason "interrupted", after a
// checkpoint if c.OutDir is set.
func runTraining(ctx context.Context, c engine.Config, st *store.Store, run int, l engine.Listener) (res *pipeline.Result, err error) {
	split, err := splitOf(st, &c, run)
	if err != nil {
		return nil, err
	}
	dev, err := openDevice(c.Device)
	if err != nil {
		return nil, fmt.Errorf("--device=%s: %w", c.Device, err)
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	return pipeline.Train(ctx, pipeline.Options{
		Config: c, Seed: c.Seed, Store: st, Split: split, Device: dev, Listener: l, Version: versionText(),
	})
}
