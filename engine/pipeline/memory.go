package pipeline

import (
	"context"
	"errors"
	"fmt"

	"dorylus/engine"
	"dorylus/engine/sim/paper"
	"dorylus/kernels"
)

// Need is memory that a run needs on its device; see paper.Need. Up and Down count an
// epoch and its evaluation.
type Need = paper.Need

// planEpochs is how many epochs a plan lasts: from the second on no memory is new.
const planEpochs = 2

// PlanMemory is what Train with the same options would hold on a device whose memory the
// host cannot address, at its peak, by what it is for, largest first. It runs the very
// same code on a device of paper, so it reads the graph, but neither features nor GPU.
// Device, Backend, Listener, Save, Stop and From are not used; Cluster must be nil: the
// device has all of the graph.
//
// A sync run with one interval allocates exactly this. Of several intervals at a time the
// gradients of weights may need more: on paper they do not wait for each other.
func PlanMemory(ctx context.Context, opt Options) ([]Need, error) {
	needs, err := PlanMemoryOn(ctx, opt, 1)
	if err != nil {
		return nil, err
	}
	return needs[0], nil
}

// PlanMemoryOn is PlanMemory for each of several devices: what TrainOn would hold.
func PlanMemoryOn(ctx context.Context, opt Options, devices int) ([][]Need, error) {
	if opt.Cluster != nil {
		return nil, errors.New("plan memory: of devices that have all of the graph together only")
	}
	p := &planning{needs: make([][]Need, devices)}
	paperDevices := make([]kernels.Device, devices)
	for i := range paperDevices {
		d := paper.New()
		p.devices, paperDevices[i] = append(p.devices, d), d
	}
	c := &opt.Config
	at := min(threads(c), intervals(c, opt.Store)) // tasks at once, each with scratch of its own
	c.Epochs, c.EvalEvery, c.Patience, c.TargetAccuracy, c.CheckpointEvery, c.MaxCost = planEpochs, 1, 0, 0, 0, 0
	c.Metric, c.Warmup = "", 0
	opt.Device, opt.Backend, opt.Save, opt.Stop, opt.From, opt.Listener = nil, nil, nil, nil, nil, engine.Listeners{}
	opt.planning = p
	if _, err := TrainOn(ctx, opt, paperDevices); err != nil {
		return nil, fmt.Errorf("plan memory: %w", err)
	}
	for _, needs := range p.needs {
		if needs == nil {
			return nil, fmt.Errorf("plan memory: %w", context.Cause(ctx))
		}
		for i := range needs {
			if n := &needs[i]; n.Name == paper.Scratch {
				n.Bytes *= int64(max(at, 1))
			}
		}
	}
	return p.needs, nil
}

// planning takes stock of devices of paper.
type planning struct {
	devices []*paper.Device
	needs   [][]Need // by device
}

// scratch is the device for what tasks work in.
func (p *planning) scratch(dev kernels.Device) kernels.Device {
	if p == nil {
		return dev
	}
	return dev.(*paper.Device).As(paper.Scratch)
}

// evaluated is told of each evaluation: ops are counted from the first to the second.
func (p *planning) evaluated(dev kernels.Device, epoch int) {
	switch {
	case p == nil:
	case epoch == planEpochs-1:
		dev.(*paper.Device).Pause()
	default:
		dev.(*paper.Device).Reset()
	}
}

// done takes stock at the end, when nothing is given back yet.
func (p *planning) done(dev kernels.Device, reason string) {
	if p == nil || reason != "epochs" {
		return
	}
	for i, d := range p.devices {
		if kernels.Device(d) == dev {
			p.needs[i] = d.Needs()
		}
	}
}
