package pipeline

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/sim/paper"
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
	if opt.Cluster != nil {
		return nil, fmt.Errorf("plan memory: of one device with all of the graph only")
	}
	dev := paper.New()
	local := backend.NewLocal(dev.As(paper.Scratch))
	defer local.Close()
	c := &opt.Config
	c.Epochs, c.EvalEvery, c.Patience, c.TargetAccuracy, c.CheckpointEvery, c.MaxCost = planEpochs, 1, 0, 0, 0, 0
	c.Metric, c.Warmup = "", 0
	opt.Device, opt.Backend, opt.Save, opt.Stop, opt.From = dev, local, nil, nil, nil
	p := &planning{dev: dev}
	opt.Listener = p
	if _, err := Train(ctx, opt); err != nil {
		return nil, fmt.Errorf("plan memory: %w", err)
	}
	if p.needs == nil {
		return nil, fmt.Errorf("plan memory: %w", context.Cause(ctx))
	}
	at := min(threads(c), intervals(c, opt.Store))
	for i := range p.needs {
		if n := &p.needs[i]; at > 1 && n.Name == paper.Scratch {
			n.Bytes *= int64(at)
		}
	}
	return p.needs, nil
}

// planning takes stock after the last epoch.
type planning struct {
	dev   *paper.Device
	needs []Need
}

// Event implements engine.Listener.
func (p *planning) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.Evaluated:
		if e.Epoch == planEpochs-1 {
			p.dev.Pause()
		} else {
			p.dev.Reset()
		}
	case engine.RunDone: // nothing is given back yet
		if e.Reason == "epochs" {
			p.needs = p.dev.Needs()
		}
	}
}
