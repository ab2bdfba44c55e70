//go:build cgo && amd64 && linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/pipeline"
	"dorylus/engine/sim/workload"
	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/kernels/cpu"
)

// ceilings measures what the threads can do together.
type ceilings struct {
	dev     kernels.Device
	probe   cpu.Probe
	threads int
	Peak    float64         `json:"flops"`           // a second
	Stream  float64         `json:"bytes_in_order"`  // a second, copied: read and written
	Rows    map[int]float64 `json:"bytes_by_stride"` // a second, of gathered rows of so many floats in the caches
}

func newCeilings(threads int) (*ceilings, error) {
	dev, err := cpu.OpenWith(cpu.Options{})
	if err != nil {
		return nil, err
	}
	c := &ceilings{dev: dev, threads: threads, Rows: map[int]float64{}}
	if c.probe, err = cpu.NewProbe(dev); err != nil {
		return nil, err
	}
	var flop float64
	took := c.best(func(int) { flop = c.probe.FMA(4_000_000) })
	c.Peak = flop * float64(threads) / took
	const values = 16 << 20
	from, to := make([][]float32, threads), make([][]float32, threads)
	for i := range threads {
		from[i], to[i] = make([]float32, values), make([]float32, values)
	}
	took = c.best(func(i int) { c.probe.Copy(to[i], from[i]) })
	c.Stream = 8 * values * float64(threads) / took
	return c, nil
}

// tableBytes is the size of the tables that rows are gathered from: a tile of sources.
const tableBytes = 4 << 20

// rows is the rate, in bytes a second, at which rows of so many columns come from a table
// that stays in the caches, each thread having its own.
func (c *ceilings) rows(cols int) (float64, error) {
	width := kernels.PadCols(min(cols, 64)) // wider ones are gathered in panels
	if r, ok := c.Rows[width]; ok {
		return r, nil
	}
	n := tableBytes / 4 / width
	ids := make([]int32, 1<<20)
	r := rand.New(rand.NewPCG(1, uint64(width)))
	for i := range ids {
		ids[i] = int32(r.IntN(n))
	}
	tables := make([]*kernels.Mat, c.threads)
	for i := range tables {
		var err error
		if tables[i], err = c.dev.Alloc(n, width); err != nil {
			return 0, err
		}
		defer c.dev.Free(tables[i])
	}
	best := 0.0
	for _, ahead := range []int{0, 16} {
		took := c.best(func(i int) { c.probe.Gather(tables[i], ids, ahead) })
		best = max(best, float64(4*width*len(ids)*c.threads)/took)
	}
	c.Rows[width] = best
	return best, nil
}

// best is the shortest time, in seconds, in which all threads have done f once.
func (c *ceilings) best(f func(thread int)) float64 {
	var least time.Duration
	for range 7 {
		var wg sync.WaitGroup
		start := time.Now()
		for i := range c.threads {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
		if took := time.Since(start); least == 0 || took < least {
			least = took
		}
	}
	return least.Seconds()
}

// floor is what an epoch of a run would take at the ceilings, in seconds, by kind of work.
type floor struct {
	Gathers  float64 `json:"gathers"`
	Products float64 `json:"products"`
	Values   float64 `json:"values"`
}

func (f floor) sum() float64 { return f.Gathers + f.Products + f.Values }

// floorOf counts an epoch of the run in folder, which was made on a store.
func (c *ceilings) floorOf(ctx context.Context, config *engine.Config, folder string) (f floor, err error) {
	st, err := store.Open(folder, store.OpenOptions{})
	if err != nil {
		return f, err
	}
	defer func() {
		if e := st.Close(); err == nil {
			err = e
		}
	}()
	cfg, err := pipeline.ModelConfig(config, st)
	if err != nil {
		return f, err
	}
	prog, err := cfg.Build()
	if err != nil {
		return f, err
	}
	if len(st.Splits) == 0 {
		return f, fmt.Errorf("%s has no split", st.Meta.Name)
	}
	seeds := st.Splits[0].Train
	w, err := workload.Build(ctx, st, workload.Options{
		Program: prog, Sparse: cfg.Sparse, Train: true, Seeds: seeds, All: !config.PruneRows, Cuts: []task.Range{{Hi: graph.Blocks(&st.Meta)}},
		Intervals: pipeline.Intervals(config, st), Reach: workload.NewReach(st, seeds),
	})
	if err != nil {
		return f, err
	}
	for _, interval := range w.Parts[0].Tasks {
		for _, amounts := range interval {
			for _, a := range amounts {
				k := w.Keys[a.Key]
				f.Products += a.Units * k.Flops() / c.Peak
				f.Values += a.Units * k.ValueBytes() / c.Stream
				if b := k.GatherBytes(); b > 0 {
					rate, err := c.rows(k.Cols)
					if err != nil {
						return f, err
					}
					f.Gathers += a.Units * b / rate
				}
			}
		}
	}
	return f, nil
}
