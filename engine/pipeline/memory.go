package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/engine"
	"dorylus/engine/inproc"
	"dorylus/engine/params"
	"dorylus/engine/sim/paper"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Memory is what a run holds on a device: see paper.Holding. Up and Down of its needs count
// an epoch and its evaluation, or a prediction.
type Memory = paper.Holding

// planEpochs is how many epochs a plan lasts: from the second on no memory is new.
const planEpochs = 2

// Sharing says who holds what is planned.
type Sharing struct {
	Devices int // that share the graph, each with a partition
	// Apart: they belong to a graph server each, whose rows and weights go through the host.
	Apart bool
	// Costs are what each device takes besides what it is asked for; nil: nothing.
	Costs []paper.Costs
}

// PlanMemory is what TrainOn with the same options would hold on each of several devices
// whose memory the host cannot address. It runs the very same code on devices of paper, so
// it reads the graph, but neither features nor GPU. Device, Backend, Listener, Save, Stop
// and From are not used; Cluster must be nil: the devices have all of the graph.
//
// A sync run with one interval on one device allocates exactly this. With several, tasks
// that run beside each other are counted as if each were at its largest at the same time.
func PlanMemory(ctx context.Context, opt Options, by Sharing) ([]Memory, error) {
	if opt.Cluster != nil {
		return nil, errors.New("plan memory: of devices that have all of the graph together only")
	}
	p := newPlanning(by)
	c := &opt.Config
	if !by.Apart {
		c.Threads = deviceThreads(threads(c), by.Devices)
	}
	c.Intervals = intervals(c, opt.Store)
	p.tasks = max(min(threads(c), c.Intervals), 1)
	c.Threads, c.Epochs, c.EvalEvery, c.Patience, c.TargetAccuracy, c.CheckpointEvery, c.MaxCost = 1, planEpochs, 1, 0, 0, 0, 0
	c.Metric, c.Warmup = "", 0
	opt.Device, opt.Backend, opt.Save, opt.Stop, opt.From, opt.Listener = nil, nil, nil, nil, nil, engine.Listeners{}
	opt.planning = p
	_, err := TrainOn(ctx, opt, p.list())
	return p.result(ctx, err)
}

// PlanPrediction is PlanMemory of PredictRowsOn, of which it has the options. Device,
// Cluster and Weights are not used.
func PlanPrediction(ctx context.Context, o PredictOptions, to Outputs, by Sharing) ([]Memory, error) {
	if o.Cluster != nil {
		return nil, errors.New("plan memory: of devices that have all of the graph together only")
	}
	p := newPlanning(by)
	if !by.Apart {
		o.Threads = deviceThreads(o.Threads, by.Devices)
	}
	p.tasks = o.Threads
	drop := func(f func(Rows) error) func(Rows) error {
		if f == nil {
			return nil
		}
		return func(Rows) error { return nil }
	}
	prog, err := o.Model.Build()
	if err != nil {
		return nil, fmt.Errorf("plan memory: %w", err)
	}
	o.Device, o.planning, o.Weights = nil, p, params.InitParams(prog.Params, 1)
	err = PredictRowsOn(ctx, o, p.list(), Outputs{Logits: drop(to.Logits), Embedding: drop(to.Embedding)})
	return p.result(ctx, err)
}

// planning takes stock of devices of paper, on which one task runs at a time.
type planning struct {
	devices   []*paper.Device
	apart     bool
	elsewhere *paper.Device // where the parameter server of devices apart is
	tasks     int           // of a run, at once

	mu   sync.Mutex
	held []Memory // by device
	more []extra
}

// extra is what tasks beside each other take, at most, besides what one at a time does.
type extra struct {
	rows    int64 // from and to other partitions
	weights int64 // gradients under way
}

func newPlanning(by Sharing) *planning {
	p := &planning{apart: by.Apart, held: make([]Memory, by.Devices), more: make([]extra, by.Devices)}
	for i := range by.Devices {
		d := paper.New(nil)
		if by.Costs != nil {
			d = paper.New(by.Costs[i])
		}
		d.SetApart(by.Apart)
		p.devices = append(p.devices, d)
	}
	if by.Apart {
		p.elsewhere = paper.New(nil)
	}
	return p
}

func (p *planning) list() []kernels.Device {
	var all []kernels.Device
	for _, d := range p.devices {
		all = append(all, d)
	}
	return all
}

// scratch is the device for what tasks work in.
func (p *planning) scratch(dev kernels.Device) kernels.Device { return p.as(dev, paper.Scratch) }

// as is the device under a name for what is allocated on it.
func (p *planning) as(dev kernels.Device, name string) kernels.Device {
	if p == nil {
		return dev
	}
	return dev.(*paper.Device).As(name)
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
func (p *planning) done(dev kernels.Device, more extra) {
	if p == nil {
		return
	}
	for i, d := range p.devices {
		if kernels.Device(d) == dev {
			p.mu.Lock()
			p.held[i], p.more[i] = d.Holding(), more
			p.mu.Unlock()
		}
	}
}

// underWay names rows on their way from one partition to another.
const underWay = "rows under way"

// result is what was held, with what tasks beside each other may take more.
func (p *planning) result(ctx context.Context, err error) ([]Memory, error) {
	if err != nil {
		return nil, fmt.Errorf("plan memory: %w", err)
	}
	for i := range p.held {
		m := &p.held[i]
		if m.Needs == nil {
			return nil, fmt.Errorf("plan memory: %w", context.Cause(ctx))
		}
		for k := range m.Needs {
			times := int64(1)
			switch m.Needs[k].Name {
			case paper.Scratch:
				times = int64(p.tasks)
			case underWay: // counted, since what is there at once depends on the time
				times = 0
			}
			m.Needs[k].Bytes *= times
			for _, at := range m.Moments {
				at[k] *= times
			}
		}
		m.Add(underWay, kernels.Other, p.more[i].rows)
		m.Add("gradients under way", kernels.Weights, p.more[i].weights)
	}
	return p.held, nil
}

// extra is what a session may hold besides what its plan has held, one task at a time.
func (s *session) extra() (e extra) {
	p, t := s.opt.planning, s.tr
	if p == nil {
		return e
	}
	e.rows = p.rows(t.train, t.eval.pass)
	made, ok := s.server.(interface{ Made() []int })
	if !ok {
		return e
	}
	roots := func(runs ...task.Range) (n int) {
		for _, r := range runs {
			n += len(params.Subtrees(r.Lo, r.Hi))
		}
		return n
	}
	if t.train.own.Len() > 1 || t.cluster != nil {
		e.weights = t.underWay(made.Made(), t.cluster != nil, roots(t.train.intervals[t.train.own.Lo:t.train.own.Hi]...))
	}
	if seat, ok := s.server.(*params.Seat); ok && seat.Central() != nil {
		e.weights += t.underWay(seat.Central().Made(), false, roots(s.opt.Cluster.Blocks...))
	}
	return e
}

// underWay is what is missing of made matrices of each parameter if so many sums over
// blocks are there at once, in each epoch that may be on, besides the weights.
func (t *trainer) underWay(made []int, shared bool, sums int) (bytes int64) {
	epochs, versions := 1, 2
	if !t.cfg.Sync {
		epochs, versions = t.cfg.Staleness+2, t.cfg.Staleness+3
	}
	if shared {
		versions++ // one comes while this device has not let go of that before the last
	}
	for k, spec := range t.train.prog.Params {
		bytes += int64(max(epochs*sums+versions-made[k], 0)) * 4 * int64(spec.Rows) * int64(kernels.PadCols(spec.Cols))
	}
	return bytes
}

// rows is what rows of others, and for them, take on a device at most.
func (p *planning) rows(passes ...*pass) (bytes int64) {
	for _, x := range passes {
		come, most := x.traffic(p.devices[0].Block)
		if p.apart {
			come = 0 // by the host
		}
		bytes += min(come, inproc.Most(len(p.devices)-1)) + int64(p.tasks)*most
	}
	return bytes
}

// traffic is the bytes of rows that come from other partitions in an epoch of a pass, and
// of the most that go to one at once.
func (p *pass) traffic(block func(int64) int64) (come, most int64) {
	for s, r := range p.routes {
		if r == nil {
			continue
		}
		width := 4 * int64(p.prog.Bufs[p.steps[s].Publish].Cols)
		for _, rows := range r.recv {
			come += block(width * int64(len(rows)))
		}
		for _, to := range r.send {
			for _, x := range to {
				most = max(most, block(width*int64(len(x.rows))))
			}
		}
	}
	return come, most
}
