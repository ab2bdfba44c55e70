package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"dorylus/csrc/metis"
	"dorylus/engine"
	"dorylus/engine/ckpt"
	"dorylus/engine/order"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/kernels/devices"
	"dorylus/lambda/fleet"
)

// partitioner is METIS, nil where it is not linked.
var partitioner = func() order.Partitioner {
	if !metis.Linked() {
		return nil
	}
	return metis.Partition
}()

// openDevice opens what a run by c computes on, and has its events say what GPUs that is.
// kernels is what the run's bits depend on.
func (a *app) openDevice(c *engine.Config, opt *pipeline.Options) (kernels string, done func() error, err error) {
	if c.Mode != "gpu" {
		if opt.Device, err = devices.Open(c.Device); err != nil {
			return "", nil, err
		}
		return opt.Device.Name(), opt.Device.Close, nil
	}
	set, err := a.openGPUs(c)
	if err != nil {
		return "", nil, err
	}
	opt.Device, opt.Listener = set.devices[0], &gpuTeller{opt.Listener, set}
	return set.kernels(), set.close, nil
}

// checkpoints is the folder of a RUN that holds them.
const checkpoints = "ckpt"

// runTraining is run number run of c, which is complete and valid, on st. Its
// seed, split and folder are those of c. It is billed by rates, nil for not at all,
// and stop, if not nil, may end it. All that happens goes to l. A ctx that
// ends is not an error: the run then ends with the reason "interrupted", after a
// checkpoint if c.OutDir is set.
func (a *app) runTraining(ctx context.Context, c engine.Config, st *store.Store, run int, rates *engine.Rates, stop func() string, l engine.Listener) (res *pipeline.Result, err error) {
	at := a.seat
	split, err := splitOf(st, &c, run)
	if err != nil {
		return nil, err
	}
	id, err := pipeline.Identify(&c, st, split, c.Seed)
	if err != nil {
		return nil, err
	}
	opt := pipeline.Options{Config: c, Seed: c.Seed, Store: st, Split: split, Listener: l, Version: versionText(), Rates: rates, Stop: stop}
	if c.OutDir != "" {
		opt.Save = pipeline.SaveTo(filepath.Join(c.OutDir, checkpoints), id, l)
	}
	if c.Resume != "" && at.leads() { // the others hear from server 0
		point, err := lastCheckpoint(c.Resume)
		if err == nil {
			err = point.Matches(id)
		}
		if err == nil {
			opt.From, err = pipeline.Restore(point)
		}
		if err != nil {
			return nil, fmt.Errorf("resume %s: %w", c.Resume, err)
		}
	}
	kernels, done, err := a.openDevice(&c, &opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	var bill func(engine.Listener) error
	if c.Mode == "lambda" {
		mode, modeErr := openLambda(ctx, &c, opt.Device)
		if modeErr != nil {
			return nil, fmt.Errorf("--mode=lambda: %w", modeErr)
		}
		defer func() { err = errors.Join(err, mode.close(l)) }()
		opt.Backend, bill = mode.backend, mode.close
	}
	if at == nil {
		res, err = pipeline.Train(ctx, opt)
	} else {
		res, err = at.train(ctx, opt, id, kernels, bill)
	}
	if errors.Is(err, fleet.ErrNoWorkers) {
		err = &codedError{exitTryAgain, err}
	}
	return res, err
}

// errNoCheckpoint is of a run in whose folder there is none: one that cannot be read is
// another matter.
var errNoCheckpoint = errors.New("it has no complete checkpoint")

// lastCheckpoint is the newest complete checkpoint of the run in folder run.
func lastCheckpoint(run string) (*ckpt.Checkpoint, error) {
	path, err := ckpt.Latest(filepath.Join(run, checkpoints))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s; train anew with --out", errNoCheckpoint, checkpoints)
	}
	if err != nil {
		return nil, err
	}
	return ckpt.Load(path)
}
