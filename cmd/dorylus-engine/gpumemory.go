package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/sim/paper"
	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/spill"
)

// A memoryPlanner counts what each of several devices will hold.
type memoryPlanner func(ctx context.Context, by pipeline.Sharing) ([]pipeline.Memory, error)

// forTraining plans a run by c.
func forTraining(c *engine.Config, st *store.Store, split dataset.Split) memoryPlanner {
	return func(ctx context.Context, by pipeline.Sharing) ([]pipeline.Memory, error) {
		return pipeline.PlanMemory(ctx, pipeline.Options{Config: *c, Seed: c.Seed, Store: st, Split: split, Listener: engine.Listeners{}, Version: versionText()}, by)
	}
}

// sharing is how the graph lies on GPUs: on those of this process, or on one of each graph
// server.
func (a *app) sharing() (by pipeline.Sharing, rank int) {
	by = pipeline.Sharing{Devices: len(a.gpu.use)}
	switch {
	case a.seat != nil:
		by.Devices, rank = len(a.seat.Graphs), a.seat.Rank
	case a.share != nil:
		by.Devices, rank = a.share.Size(), a.share.Rank()
	default:
		return by, 0
	}
	by.Apart = true
	return by, rank
}

// memoryPlans are where all that a run by c holds lies on each GPU of this process. Those
// of the other servers are planned there.
func (a *app) memoryPlans(ctx context.Context, c *engine.Config, plan memoryPlanner) ([]*spill.Plan, error) {
	by, rank := a.sharing()
	use := a.gpu.use
	if by.Apart { // of the other servers' devices this one's stands for all
		use = make([]int, by.Devices)
		for i := range use {
			use[i] = a.gpu.use[0]
		}
	}
	plans, err := a.gpu.plans(ctx, c, plan, by, use)
	if err == nil && by.Apart {
		plans = plans[rank : rank+1]
	}
	return plans, err
}

// plans finds a place for all on devices of the report, of these numbers.
func (g *gpuChoice) plans(ctx context.Context, c *engine.Config, plan memoryPlanner, by pipeline.Sharing, use []int) (plans []*spill.Plan, err error) {
	var budgets []spill.Budget
	var costs []cuda.Costs
	for _, n := range use {
		d := &g.report.Devices[n]
		limit, err := engine.GPUMemoryLimit(c.GPUMemory, d.Free)
		if err != nil {
			return nil, fmt.Errorf("--gpu-memory=%s: %s: %w", c.GPUMemory, d.Name, err)
		}
		budgets = append(budgets, spill.Budget{Device: d.Name, Limit: limit, Free: d.Free, Total: d.Bytes})
		costs = append(costs, cuda.Costs{Precision: c.Precision, Products: c.GPUProducts, Limit: limit})
	}
	return cuda.Settle(costs, func(costs []cuda.Costs) (plans []*spill.Plan, err error) {
		by.Costs = nil
		for _, c := range costs {
			by.Costs = append(by.Costs, c)
		}
		held, err := plan(ctx, by)
		if err != nil {
			return nil, err
		}
		for i, b := range budgets {
			plans = append(plans, planOn(b, c.GPUProducts, held[i]))
		}
		return plans, nil
	})
}

// planOn finds a place for all on a device.
func planOn(b spill.Budget, products string, held pipeline.Memory) *spill.Plan {
	var needs []spill.Need
	for _, n := range held.Needs {
		needs = append(needs, spill.Need{
			Name: n.Name, Purpose: n.Purpose, Bytes: n.Bytes, Rows: n.Rows, Each: n.Each, Count: n.Count, Up: n.Up, Down: n.Down, Gathered: n.Gathered, Width: n.Width,
			Graph: n.Purpose == kernels.Other && (n.Name == paper.Edges || n.Name == paper.Index),
		})
	}
	return cuda.MakePlan(b, products, needs, held.Moments)
}

// refusal is why plans do not let a run begin, in one line: each device that lacks memory, by
// name.
func refusal(plans []*spill.Plan) error {
	var all error
	for _, p := range plans {
		switch err := p.Err(); {
		case err == nil:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// plansText is plans for people.
func plansText(plans []*spill.Plan) string {
	var all []string
	for _, p := range plans {
		all = append(all, strings.TrimSpace(p.String()))
	}
	return strings.Join(all, "\n")
}

// settleMemory plans the memory of a run by c before its GPUs are opened, and shows the
// plans: all lines of those of this process, one line at a server that does not lead. One
// that refuses the run is an error.
func (a *app) settleMemory(ctx context.Context, c *engine.Config, plan memoryPlanner) ([]*spill.Plan, error) {
	plans, err := a.memoryPlans(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	quiet := c.JSON || c.Progress == "none" || c.Progress == "json"
	text := plansText(plans)
	if !a.seat.leads() {
		quiet, text = a.seat.quiet, plans[0].Brief()
	}
	if text != a.gpu.shown { // of several runs once
		a.note(quiet, "%s", text)
	}
	a.gpu.shown = text
	return plans, refusal(plans)
}

// dryMemory is the plans of a run by c that is not made, none without GPUs, and the error of
// those that refuse it. Of a run on several servers of this host it has all.
func (a *app) dryMemory(ctx context.Context, c *engine.Config, plan memoryPlanner) (plans []*spill.Plan, err error) {
	switch {
	case c.Mode != "gpu" || a.gpu == nil:
		return nil, nil
	case a.seat == nil && a.mates > 0:
		use, err := a.matesGPUs(c)
		if err != nil {
			return nil, err
		}
		if plans, err = a.gpu.plans(ctx, c, plan, pipeline.Sharing{Devices: a.mates, Apart: true}, use); err != nil {
			return nil, err
		}
	default:
		if plans, err = a.memoryPlans(ctx, c, plan); err != nil {
			return nil, err
		}
	}
	return plans, refusal(plans)
}

// matesGPUs are the GPUs of all graph servers of this host, of which each takes one.
func (a *app) matesGPUs(c *engine.Config) (use []int, err error) {
	numbers, err := engine.GPUNumbers(c.GPU)
	if err != nil {
		return nil, usagef("--gpu=%s: %w", c.GPU, err)
	}
	last := a.local
	defer func() { a.local = last }()
	for a.local = range a.mates {
		one, err := a.ownGPUs(&a.gpu.report, slices.Clone(numbers))
		if err != nil {
			return nil, err
		}
		use = append(use, one[0])
	}
	return use, nil
}

// plansJSON is what --json says of plans: an object for one device, a list for several.
func plansJSON(plans []*spill.Plan) any {
	if len(plans) == 1 {
		return planJSON(plans[0])
	}
	var all []map[string]any
	for _, p := range plans {
		all = append(all, planJSON(p))
	}
	return all
}

func planJSON(p *spill.Plan) map[string]any {
	items := []map[string]any{}
	for _, l := range p.Places() {
		items = append(items, map[string]any{"name": l.Name, "bytes": l.Bytes, "in_host_memory": l.Spilled})
	}
	return map[string]any{
		"device": p.Device, "verdict": p.Verdict.String(), "limit_bytes": p.Limit, "free_bytes": p.Free, "memory_bytes": p.Total, "on_gpu_bytes": p.OnGPU, "on_host_bytes": p.OnHost,
		"staging_bytes": p.Arena, "copied_up_bytes": p.Up, "copied_down_bytes": p.Down, "epoch_seconds_estimate": p.Seconds, "items": items,
	}
}
