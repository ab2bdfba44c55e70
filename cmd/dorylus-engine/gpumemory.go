package main

import (
	"context"
	"fmt"
	"strings"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/kernels/cuda"
	"dorylus/kernels/spill"
)

// memoryPlan is where all that a run holds lies on a GPU of b, as far as one GPU holds the
// whole graph; nil where several share it.
func (a *app) memoryPlan(ctx context.Context, c *engine.Config, st *store.Store, split dataset.Split, b spill.Budget) (*spill.Plan, error) {
	if a.mates > 0 || len(a.gpu.use) > 1 {
		return nil, nil
	}
	if a.gpu.needs == nil {
		needs, err := pipeline.PlanMemory(ctx, pipeline.Options{Config: *c, Seed: c.Seed, Store: st, Split: split, Listener: engine.Listeners{}, Version: versionText()})
		if err != nil {
			return nil, err
		}
		for _, n := range needs {
			a.gpu.needs = append(a.gpu.needs, spill.Need{
				Name: n.Name, Purpose: n.Purpose, Bytes: n.Bytes, Rows: n.Rows, Up: n.Up, Down: n.Down, Gathered: n.Gathered,
			})
		}
	}
	return cuda.MakePlan(b, c.GPUProducts, a.gpu.needs), nil
}

// budgetOf is what device number n of the report offers to a run by c.
func (g *gpuChoice) budgetOf(n int, c *engine.Config) (spill.Budget, error) {
	d := &g.report.Devices[n]
	limit, err := engine.GPUMemoryLimit(c.GPUMemory, d.Free)
	return spill.Budget{Device: d.Name, Limit: limit, Free: d.Free, Total: d.Bytes}, err
}

// partsText says why there is no plan of parts of a graph.
const partsText = "Memory plan: none, since several GPUs share the graph; what does not fit ends the run before its first epoch."

// settleMemory plans the memory of a run by c before its GPU is opened, and shows the plan,
// nil where there is none. One that refuses the run is an error.
func (a *app) settleMemory(ctx context.Context, c *engine.Config, st *store.Store, split dataset.Split) (*spill.Plan, error) {
	quiet := c.JSON || c.Progress == "none" || c.Progress == "json" || a.gpu.shown || !a.seat.leads()
	a.gpu.shown = true
	b, err := a.gpu.budgetOf(a.gpu.use[0], c)
	if err != nil {
		return nil, fmt.Errorf("--gpu-memory=%s: %w", c.GPUMemory, err)
	}
	plan, err := a.memoryPlan(ctx, c, st, split, b)
	switch {
	case err != nil:
		return nil, err
	case plan == nil:
		a.note(quiet, "%s", partsText)
		return nil, nil
	}
	a.note(quiet, "%s", strings.TrimSpace(plan.String()))
	return plan, plan.Err()
}

// dryMemory is the plan of a run by c that is not made, and the error of one that refuses
// it.
func (a *app) dryMemory(ctx context.Context, c *engine.Config, st *store.Store, split dataset.Split) (plan *spill.Plan, text string, err error) {
	if c.Mode != "gpu" || a.gpu == nil {
		return nil, "", nil
	}
	b, err := a.gpu.budgetOf(a.gpu.use[0], c)
	if err == nil {
		plan, err = a.memoryPlan(ctx, c, st, split, b)
	}
	switch {
	case err != nil:
		return nil, "", err
	case plan == nil:
		return nil, partsText, nil
	}
	return plan, plan.String(), plan.Err()
}

// planJSON is what --json says of a plan.
func planJSON(p *spill.Plan) map[string]any {
	items := []map[string]any{}
	for _, i := range p.Items {
		name := i.Name
		if name == "" {
			name = fmt.Sprint(i.Purpose)
		}
		items = append(items, map[string]any{"name": name, "bytes": i.Bytes, "in_host_memory": i.Spilled})
	}
	return map[string]any{
		"device": p.Device, "verdict": p.Verdict.String(), "limit_bytes": p.Limit, "free_bytes": p.Free, "memory_bytes": p.Total, "on_gpu_bytes": p.OnGPU, "on_host_bytes": p.OnHost,
		"staging_bytes": p.Arena, "copied_up_bytes": p.Up, "copied_down_bytes": p.Down, "epoch_seconds_estimate": p.Seconds, "items": items,
	}
}
