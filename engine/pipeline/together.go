package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/engine/graph"
	"dorylus/engine/inproc"
	"dorylus/engine/params"
	"dorylus/kernels"
)

// together is a run on several devices of this process: a partition and a session each,
// as in a cluster whose servers reach each other through memory. One parameter server, on
// the first device, serves all.
type together struct {
	devices []kernels.Device
	names   []string
	group   *inproc.Group
	rows    *inproc.Exchange
	params  *params.Shared

	mu  sync.Mutex
	err error // the first failure
}

// TrainOn is Train on several devices of this process, which are the caller's to open and
// close; opt.Device, opt.Backend and opt.Cluster are nil. Events come as from graph server
// 0 of a cluster, those of RunStart and ServerDone name the devices. The first error of
// any session ends all of them and says on which device it was. On one device it is Train.
func TrainOn(ctx context.Context, opt Options, devices []kernels.Device) (*Result, error) {
	if opt.Device != nil || opt.Backend != nil || opt.Cluster != nil {
		return nil, errors.New("train on several devices: a device, a backend or a cluster is set besides")
	}
	if len(devices) == 1 {
		opt.Device = devices[0]
		return Train(ctx, opt)
	}
	t, err := newTogether(devices, opt.planning)
	if err != nil {
		return nil, fmt.Errorf("train on several devices: %w", err)
	}
	t.params = params.NewShared(len(devices))
	blocks := graph.Partition(opt.Store, opt.Split.Train, len(devices))
	if p := opt.planning; p == nil {
		opt.Config.Threads = deviceThreads(threads(&opt.Config), len(devices))
	} else if p.elsewhere != nil {
		t.params.On(p.elsewhere)
	}
	results := make([]*Result, len(devices))
	t.each(func(rank int) (err error) {
		o := opt
		o.Device = devices[rank]
		if rank > 0 {
			o.From, o.Save, o.Stop = nil, nil, nil
		}
		r := newDeviceReport(t, rank, opt.Listener)
		o.Listener = r
		o.Cluster = &Cluster{
			Group: t.group.Member(rank), Exchange: r.port, Blocks: blocks, Report: r.report, Hear: r.hear,
			Connect: func(ctx context.Context, j ParamJob) (Server, error) {
				seat, err := t.params.Join(ctx, rank, j.Config, kernels.Span{Lo: j.Blocks.Lo, Hi: j.Blocks.Hi}, j.Intervals)
				if err != nil {
					return nil, err
				}
				return seat, nil
			},
		}
		results[rank], err = Train(ctx, o)
		return err
	})
	if err := t.params.Close(); err != nil {
		t.fail(err)
	}
	t.rows.Close()
	return results[0], t.err
}

// deviceThreads is how many workers each of several devices has: one keeps a device waiting
// after each task.
func deviceThreads(all, devices int) int {
	if devices == 1 {
		return all
	}
	return max((max(all, 1)+devices-1)/devices, 2)
}

// PredictRowsOn is PredictRows on several devices of this process; o.Device and o.Cluster
// are nil.
func PredictRowsOn(ctx context.Context, o PredictOptions, devices []kernels.Device, to Outputs) error {
	if o.Device != nil || o.Cluster != nil {
		return errors.New("predict on several devices: a device or a cluster is set besides")
	}
	if len(devices) == 1 {
		o.Device = devices[0]
		return PredictRows(ctx, o, to)
	}
	t, err := newTogether(devices, o.planning)
	if err != nil {
		return fmt.Errorf("predict on several devices: %w", err)
	}
	blocks := graph.Partition(o.Store, nil, len(devices))
	if o.planning == nil {
		o.Threads = deviceThreads(o.Threads, len(devices))
	}
	t.each(func(rank int) error {
		o, to := o, to
		o.Device = devices[rank]
		o.Cluster = &Cluster{Group: t.group.Member(rank), Exchange: t.rows.Port(rank), Blocks: blocks}
		if rank > 0 {
			to = Outputs{}
		}
		return PredictRows(ctx, o, to)
	})
	t.rows.Close()
	return t.err
}

// newTogether refuses devices that are no devices of their own each.
func newTogether(devices []kernels.Device, p *planning) (*together, error) {
	t := &together{devices: devices}
	seen := map[kernels.Device]int{}
	names := map[string]int{}
	for rank, d := range devices {
		if d == nil {
			return nil, fmt.Errorf("device %d of %d is nil", rank, len(devices))
		}
		if other, ok := seen[d]; ok {
			return nil, fmt.Errorf("%s is both device %d and device %d", d.Name(), other, rank)
		}
		seen[d] = rank
		names[d.Name()]++
	}
	if len(devices) == 0 {
		return nil, errors.New("there are none")
	}
	for rank, d := range devices {
		name := d.Name()
		if names[name] > 1 {
			name = fmt.Sprintf("%s (device %d)", name, rank)
		}
		t.names = append(t.names, name)
	}
	rooms := make([]kernels.Device, len(devices))
	for i, d := range devices {
		rooms[i] = p.as(d, underWay)
	}
	t.group, t.rows = inproc.NewGroup(t.names), inproc.NewExchange(rooms)
	return t, nil
}

// each runs all sessions and waits for them. The first that fails ends the others, which
// then fail by its error.
func (t *together) each(run func(rank int) error) {
	var wg sync.WaitGroup
	for rank := range t.devices {
		wg.Go(func() {
			if err := run(rank); err != nil {
				at := &params.DeviceError{Rank: rank}
				errors.As(err, &at) // of another's device
				t.fail(fmt.Errorf("%s: %w", t.names[at.Rank], err))
			}
			t.rows.Port(rank).Leave()
		})
	}
	wg.Wait()
}

func (t *together) fail(err error) {
	t.mu.Lock()
	first := t.err == nil
	if first {
		t.err = err
	}
	t.mu.Unlock()
	if !first {
		return
	}
	t.group.Fail(err)
	t.rows.Fail(err)
	if t.params != nil {
		t.params.Fail(err)
	}
}
