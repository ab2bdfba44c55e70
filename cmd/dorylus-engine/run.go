package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"dorylus/csrc/metis"
	"dorylus/engine"
	"dorylus/engine/ckpt"
	"dorylus/engine/order"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
)

// checkpointDir is the folder of checkpoints in a RUN.
const checkpointDir = "ckpt"

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
	opt := pipeline.Options{
		Config: c, Seed: c.Seed, Store: st, Split: split, Device: dev, Listener: l, Version: versionText(),
	}
	if err := keepCheckpoints(&opt); err != nil {
		return nil, err
	}
	return pipeline.Train(ctx, opt)
}

// keepCheckpoints lets a run save its state in its folder, and go on from the
// state that it resumes.
func keepCheckpoints(o *pipeline.Options) error {
	c := &o.Config
	if c.OutDir == "" && c.Resume == "" {
		return nil
	}
	id, err := pipeline.Identify(c, o.Store, o.Split, o.Seed)
	if err != nil {
		return err
	}
	if c.OutDir != "" {
		o.Save = pipeline.SaveTo(filepath.Join(c.OutDir, checkpointDir), id, o.Listener)
	}
	if c.Resume == "" {
		return nil
	}
	saved, err := loadCheckpoint(c.Resume)
	if err != nil {
		return err
	}
	if err := saved.Matches(id); err != nil {
		return fmt.Errorf("resume %s: %w", c.Resume, err)
	}
	o.From, err = pipeline.Restore(saved)
	return err
}

// loadCheckpoint is the newest checkpoint of a run.
func loadCheckpoint(run string) (*ckpt.Checkpoint, error) {
	path, err := ckpt.Latest(filepath.Join(run, checkpointDir))
	if err != nil {
		return nil, err
	}
	return ckpt.Load(path)
}
