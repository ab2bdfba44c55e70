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
	"dorylus/kernels"
	"dorylus/kernels/devices"
	"dorylus/kernels/spill"
	"dorylus/lambda/fleet"
)

// partitioner is METIS, nil where it is not linked.
var partitioner = func() order.Partitioner {
	if !metis.Linked() {
		return nil
	}
	return metis.Partition
}()

// placeOfWork is what a run computes on, open.
type placeOfWork struct {
	devices []kernels.Device
	kernels string // what the bits of a run depend on
	gpus    *gpuSet
}

// openDevices opens what c says to compute on.
func (a *app) openDevices(c *engine.Config) (*placeOfWork, error) {
	if c.Mode == "gpu" {
		set, err := a.openGPUs(c)
		if err != nil {
			return nil, err
		}
		return &placeOfWork{set.all(), set.kernels(), set}, nil
	}
	dev, err := devices.Open(c.Device)
	if err != nil {
		return nil, err
	}
	return &placeOfWork{[]kernels.Device{dev}, dev.Name(), nil}, nil
}

func (p *placeOfWork) close() error {
	if p.gpus != nil {
		return p.gpus.close()
	}
	return p.devices[0].Close()
}

// tells is l, which is also told what GPUs there are.
func (p *placeOfWork) tells(l engine.Listener) engine.Listener {
	if p.gpus == nil {
		return l
	}
	return &gpuTeller{Listener: l, set: p.gpus}
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
	var memory []*spill.Plan
	if c.Mode == "gpu" {
		if memory, err = a.settleMemory(ctx, &c, forTraining(&c, st, split)); err != nil {
			return nil, err
		}
	}
	on, err := a.openDevices(&c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if memory != nil {
		if err := on.gpus.keepTo(memory); err != nil {
			return nil, err
		}
	}
	opt.Listener = on.tells(opt.Listener)
	var bill func(engine.Listener) error
	if c.Mode == "lambda" {
		mode, modeErr := openLambda(ctx, &c, on.devices[0])
		if modeErr != nil {
			return nil, fmt.Errorf("--mode=lambda: %w", modeErr)
		}
		defer func() { err = errors.Join(err, mode.close(l)) }()
		opt.Backend, bill = mode.backend, mode.close
	}
	switch {
	case at != nil:
		opt.Device = on.devices[0]
		res, err = at.train(ctx, opt, id, on.kernels, bill)
	case len(on.devices) > 1:
		res, err = pipeline.TrainOn(ctx, opt, on.devices)
	default:
		opt.Device = on.devices[0]
		res, err = pipeline.Train(ctx, opt)
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
