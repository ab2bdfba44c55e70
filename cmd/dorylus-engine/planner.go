package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"

	"dorylus/engine"
	"dorylus/engine/cost"
	"dorylus/engine/dataset"
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/pipeline"
	"dorylus/engine/sim"
	"dorylus/engine/sim/rates"
	"dorylus/engine/sim/workload"
	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels/devices"
	lambdaplan "dorylus/lambda/plan"
)

// What plan assumes where it does not measure. planLong and planReport.Assumed say so.
const (
	packSpeed  = 0.5e9    // bytes a second of a core that packs or unpacks a message: `go test -bench Rows ./cluster/ghost`
	linkShare  = 0.95     // of a link's bandwidth that is left beside headers
	msgBytes   = 200      // of each message
	taskTime   = 20e-6    // seconds of handing out any task
	lambdaLane = 75e6     // bytes a second to and from a Lambda worker
	lambdaLife = 870.0    // seconds of an invocation
	processMem = 96 << 20 // of a process without data
	played     = 4        // epochs of a simulation
)

// planner works plans out.
type planner struct {
	c         *engine.Config
	f         planFlags
	lambda    bool
	servers   []int
	given     *rates.Speeds
	table     *cost.Table
	instance  string
	cores     int
	bandwidth float64 // bytes per second
	memory    int64   // 0: not known
	gpuMemory int64   // that may be used of a GPU; 0: there is none
	gpuText   []string

	st    *store.Store
	split dataset.Split
	cfg   model.Config
	prog  *model.Program
	reach *workload.Reach
	known map[workload.Key]rates.Rate
}

// run makes the report.
func (p *planner) run(ctx context.Context, note func(string)) (*planReport, error) {
	var err error
	if p.cfg, err = pipeline.ModelConfig(p.c, p.st); err != nil {
		return nil, err
	}
	if p.prog, err = p.cfg.Build(); err != nil {
		return nil, err
	}
	p.reach, p.known = workload.NewReach(p.st, p.split.Train), map[workload.Key]rates.Rate{}
	r := p.newReport()
	for _, n := range p.servers {
		note(fmt.Sprintf("plan: %d graph servers", n))
		one, err := p.one(ctx, n)
		if err != nil {
			return nil, err
		}
		r.Plans = append(r.Plans, one)
	}
	r.conclude(p)
	return r, nil
}

// one is the plan for n graph servers.
func (p *planner) one(ctx context.Context, n int) (*planRow, error) {
	train, err := p.workload(ctx, n, true)
	if err != nil {
		return nil, err
	}
	eval, err := p.workload(ctx, n, false)
	if err != nil {
		return nil, err
	}
	row := &planRow{Servers: n, Blocks: train.Blocks, Intervals: train.Intervals}
	p.remember(row, train, eval)
	if !row.Fits {
		return row, nil
	}
	if err := p.measure(ctx, train, eval); err != nil {
		return nil, err
	}
	t, err := p.play(train, n, played)
	if err != nil {
		return nil, err
	}
	e, err := p.play(eval, n, 1)
	if err != nil {
		return nil, err
	}
	p.fill(row, train, eval, t, e)
	return row, p.price(row)
}

// workload is that of a pass on n servers.
func (p *planner) workload(ctx context.Context, n int, train bool) (*workload.Workload, error) {
	o := workload.Options{
		Program: p.prog, Sparse: p.cfg.Sparse, Train: train, Shared: train && p.c.Pipeline == "async",
		Intervals: pipeline.Intervals(p.c, p.st), Wire: p.wire(),
	}
	if n == 1 {
		o.Cuts = []task.Range{{Hi: graph.Blocks(&p.st.Meta)}}
	} else {
		o.Cuts = graph.Partition(p.st, p.split.Train, n)
	}
	if train {
		o.Seeds, o.Reach, o.All = p.split.Train, p.reach, !p.c.PruneRows
	}
	if p.lambda {
		o.Traffic, o.Merged = p.traffic(train), true
	}
	w, err := workload.Build(ctx, p.st, o)
	if err != nil {
		return nil, fmt.Errorf("plan for %d servers: %w", n, err)
	}
	return w, nil
}

// wire is the bytes of a value between servers.
func (p *planner) wire() int {
	if p.c.WirePrecision == "fp32" {
		return 4
	}
	return 2
}

// traffic is what the steps exchange with Lambda workers that have lost nothing.
func (p *planner) traffic(train bool) []workload.Traffic {
	steps := p.prog.Steps
	if !train {
		steps = steps[:p.prog.Forward]
	}
	lp := lambdaplan.New(p.prog, len(steps))
	held := map[int]int{}
	out := make([]workload.Traffic, len(steps))
	for i, s := range lp.Steps {
		if s == nil {
			continue
		}
		for _, v := range s.Needs {
			if at, have := held[v.Buf]; v.Step >= 0 && !(have && at == v.Step) {
				out[i].Down = append(out[i].Down, v.Buf)
				held[v.Buf] = v.Step
			}
		}
		for _, b := range steps[i].Out {
			held[b] = i
		}
		out[i].Up, out[i].Params = s.Ships, steps[i].Grads
	}
	return out
}

// measure finds the speeds of kinds of work that are not known yet.
func (p *planner) measure(ctx context.Context, loads ...*workload.Workload) (err error) {
	var keys []workload.Key
	add := func(k workload.Key) {
		if _, known := p.known[k]; !known && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, w := range loads {
		for _, k := range w.Keys {
			add(k)
		}
	}
	add(workload.Key{Op: workload.Values})
	if len(keys) == 0 {
		return nil
	}
	if p.given != nil {
		for i, t := range p.given.PerUnit(keys) {
			p.known[keys[i]] = rates.Rate{Key: keys[i], PerUnit: t}
		}
		return nil
	}
	dev, err := devices.Open(p.c.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	rows := p.st.Meta.Vertices / max(pipeline.Intervals(p.c, p.st), 1)
	list, err := rates.Measure(ctx, keys, rates.Options{Device: dev, Store: p.st, Threads: min(p.cores, runtime.NumCPU()), Rows: max(rows, p.st.Meta.BlockRows)})
	if err != nil {
		return err
	}
	for _, r := range list {
		p.known[r.Key] = r
	}
	return nil
}

// perUnit are the seconds of a unit by key of w.
func (p *planner) perUnit(w *workload.Workload, factor float64) []float64 {
	out := make([]float64, len(w.Keys))
	for i, k := range w.Keys {
		out[i] = p.known[k].PerUnit * factor
	}
	return out
}

// play simulates epochs of a workload on n servers.
func (p *planner) play(w *workload.Workload, n, epochs int) (*sim.Result, error) {
	pace := workload.Pace{PerUnit: p.perUnit(w, 1), Task: taskTime, Cores: p.cores}
	if p.lambda {
		pace.Slots, pace.PerUnitAway = p.workers(w, n), p.perUnit(w, max(1769/float64(p.c.LambdaMemory), 1))
	}
	c := sim.Config{
		Intervals: w.Intervals, Servers: w.Servers(pace), Epochs: epochs, Sync: p.c.Pipeline != "async", Staleness: p.c.Staleness, Wait: p.c.AsyncWait,
		Net:    sim.Network{Bandwidth: p.bandwidth * linkShare, Latency: p.f.latency.Seconds(), Overhead: msgBytes, Pack: packSpeed, Lane: lambdaLane},
		Params: sim.Params{Weights: w.Params, Update: p.update(w)},
	}
	if epochs == 1 { // an evaluation brings no update
		c.Params.Weights, c.Params.Update = 0, 0
	}
	for k := range p.f.params {
		c.Params.Hosts = append(c.Params.Hosts, k%n)
	}
	return sim.Run(c)
}

// workers is the number of Lambda workers of each server.
func (p *planner) workers(w *workload.Workload, n int) int {
	if k, err := strconv.Atoi(p.c.Lambdas); err == nil && k > 0 {
		return k
	}
	return max(min((w.Intervals+n-1)/n, 100), 1)
}

// update is the seconds of a new version: sums of what servers have sent, and the step.
func (p *planner) update(w *workload.Workload) float64 {
	sums := int64(0)
	for i := range w.Parts {
		for _, b := range w.Parts[i].Push {
			sums += b
		}
	}
	value := p.known[workload.Key{Op: workload.Values}].PerUnit
	return (2*float64(sums) + 7*float64(w.Params)) / 4 * value
}

// remember fills in the memory of the largest server, and whether it fits.
func (p *planner) remember(row *planRow, train, eval *workload.Workload) {
	for i := range train.Parts {
		t, e := train.Parts[i].Memory, eval.Parts[i].Memory
		m := planMemory{
			Matrices: t.Matrices + e.Matrices, Constants: t.Constants + e.Constants, Edges: t.Edges + e.Edges, Index: t.Index + e.Index,
			Store: t.Store, Starting: max(t.Start, e.Start), Other: processMem + 10*train.Params,
		}
		if row.Servers == 1 && e.Constants > 0 && t.Constants > 0 { // the gather of all rows is kept once
			m.Constants = max(t.Constants, e.Constants)
		}
		m.Total = m.Matrices + m.Constants + m.Edges + m.Index + m.Store + m.Starting + m.Other
		if m.Total > row.Memory.Total {
			row.Memory = m
		}
	}
	row.Fits = p.memory == 0 || row.Memory.Total <= p.memory
	if p.gpuMemory > 0 && row.Memory.onDevice() > p.gpuMemory {
		row.Fits = false
	}
}

// fill turns what was played into a row.
func (p *planner) fill(row *planRow, train, eval *workload.Workload, t, e *sim.Result) {
	row.TrainSeconds, row.EvalSeconds = t.Epoch(), e.Epoch()
	row.EpochSeconds = row.TrainSeconds + row.EvalSeconds/float64(p.c.EvalEvery)
	start := 0.0
	for i := range train.Parts {
		s := train.Parts[i].Start.Seconds(p.perUnit(train, 1)) + eval.Parts[i].Start.Seconds(p.perUnit(eval, 1))
		if row.Servers == 1 && s > 0 { // all rows, once for both
			s = max(train.Parts[i].Start.Seconds(p.perUnit(train, 1)), eval.Parts[i].Start.Seconds(p.perUnit(eval, 1)))
		}
		start = max(start, s/float64(p.cores))
	}
	row.StartSeconds = start
	row.RunSeconds = start + row.EpochSeconds*float64(p.c.Epochs)
	row.TaskSeconds = map[string]float64{}
	for i, s := range t.Steps {
		row.TaskSeconds[train.Steps[i].Name] += s / played
	}
	for i, s := range e.Steps {
		row.TaskSeconds["eval "+eval.Steps[i].Name] += s / float64(p.c.EvalEvery)
	}
	row.TaskSeconds["WU"] = t.Updates / played
	cores := float64(p.cores)
	for i, u := range t.Servers {
		v := e.Servers[i]
		per := func(train, eval float64) float64 { return train/played + eval/float64(p.c.EvalEvery) }
		row.SentBytes += int64(per(float64(u.Sent), float64(v.Sent)))
		row.Messages += int64(per(float64(u.Messages), float64(v.Messages)))
		row.LambdaBytes += int64(per(float64(u.RemoteSent+u.RemoteReceived), float64(v.RemoteSent+v.RemoteReceived)))
		row.PackSeconds += per(u.Packing, v.Packing)
		row.GhostRows += train.Parts[i].Ghosts
		row.Waiting = append(row.Waiting, round(max(1-(u.Busy/played)/(cores*t.Seconds()/played), 0), 4))
		row.LinkUse = max(row.LinkUse, max(u.Sending, u.Receiving)/t.Seconds())
	}
	ghosts := 0.0
	for _, part := range [...]*workload.Workload{train, eval} {
		n := 0.0
		for i := range part.Parts {
			for _, tasks := range part.Parts[i].Sends {
				for _, list := range tasks {
					for _, m := range list {
						n += float64(m.Bytes)
					}
				}
			}
		}
		if part == eval {
			n /= float64(p.c.EvalEvery)
		}
		ghosts += n
	}
	row.GhostBytes = int64(ghosts)
	if p.lambda {
		row.Workers = p.workers(train, row.Servers) * row.Servers
	}
}

// price fills in dollars.
func (p *planner) price(row *planRow) error {
	r, err := p.table.Price(cost.Servers{Graph: p.instance, Graphs: row.Servers, Lambda: p.lambda})
	if err != nil || r == nil {
		return err
	}
	bill := func(seconds float64) (cost.Dollars, error) {
		u := cost.Usage{Seconds: seconds}
		if p.lambda {
			u.LambdaMBms = map[string]int64{cost.X86: int64(seconds*1000) * int64(row.Workers) * int64(p.c.LambdaMemory)}
			u.Requests = int64(row.Workers) * int64(math.Ceil(seconds/lambdaLife))
		}
		total, known := u.Bill(r).Total()
		if !known {
			return 0, fmt.Errorf("price a run on %s: %s have no price", p.instance, u.Bill(r).Missing)
		}
		return total, nil
	}
	epoch, err := bill(row.EpochSeconds)
	if err != nil {
		return err
	}
	run, err := bill(row.RunSeconds)
	if err != nil {
		return err
	}
	row.EpochUSD, row.RunUSD = ptr(epoch.USD()), ptr(run.USD())
	return nil
}

func ptr(x float64) *float64 { return &x }

func round(x float64, digits int) float64 {
	by := math.Pow(10, float64(digits))
	return math.Round(x*by) / by
}
