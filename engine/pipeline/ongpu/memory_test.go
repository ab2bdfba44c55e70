//go:build cuda && cgo && linux && (amd64 || arm64)

package ongpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine"
	"dorylus/engine/pipeline"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/spill"
)

// planned are the memory plans of a run on devices with so much memory each.
func planned(t *testing.T, o pipeline.Options, devices int, limit int64) (plans []*spill.Plan) {
	t.Helper()
	one := cuda.Costs{Precision: "fp32", Limit: limit}
	plans, err := cuda.Settle([]cuda.Costs{one, one}[:devices], func(costs []cuda.Costs) ([]*spill.Plan, error) {
		by := pipeline.Sharing{Devices: devices}
		for _, c := range costs {
			by.Costs = append(by.Costs, c)
		}
		held, err := pipeline.PlanMemory(context.Background(), o, by)
		return plansOf(held, limit), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plans
}

func plansOf(held []pipeline.Memory, limit int64) (plans []*spill.Plan) {
	for i, h := range held {
		var needs []spill.Need
		for _, m := range h.Needs {
			needs = append(needs, spill.Need{
				Name: m.Name, Purpose: m.Purpose, Bytes: m.Bytes, Rows: m.Rows, Each: m.Each, Count: m.Count, Up: m.Up, Down: m.Down, Gathered: m.Gathered, Width: m.Width,
			})
		}
		plans = append(plans, cuda.MakePlan(spill.Budget{Device: fmt.Sprintf("cuda:%d", i), Limit: limit}, "", needs, h.Moments))
	}
	return plans
}

// options are those of a short run of a network.
func (n network) options(t *testing.T, set func(*engine.Config)) pipeline.Options {
	t.Helper()
	st := graph(t, n.data)
	o := pipeline.Options{Config: engine.DefaultConfig(n.model), Store: st, Split: st.Splits[0], Listener: engine.Listeners{}}
	c := &o.Config
	c.Mode, c.Epochs, c.EvalEvery, c.Hidden = "gpu", 3, 2, 6
	n.set(c)
	set(c)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return o
}

// What a device holds at its peak is no more than its plan, and the plan is no more than
// 2 % above it, besides gradients of weights and rows under way that tasks beside each other
// may need and the margin.
func TestEmulatedDevicesHoldWhatWasPlanned(t *testing.T) {
	for i, c := range []struct {
		network, devices, intervals int
		pipeline                    string
	}{
		{0, 1, 1, "sync"}, {0, 2, 4, "async"}, {1, 1, 2, "sync"}, {2, 1, 4, "async"}, {2, 2, 1, "sync"},
		{4, 1, 4, "sync"}, {5, 2, 2, "sync"}, {6, 1, 2, "async"}, {7, 2, 1, "async"},
	} {
		n := networks[c.network]
		if testing.Short() && i%4 > 0 {
			continue
		}
		t.Run(fmt.Sprintf("%s, %d devices, %d intervals, %s", n.name, c.devices, c.intervals, c.pipeline), func(t *testing.T) {
			_, devs := emulated(t, c.devices, fmt.Sprintf("seed=%d", i+1))
			o := n.options(t, func(f *engine.Config) {
				f.Intervals, f.Pipeline = c.intervals, c.pipeline
				if c.pipeline == "async" {
					f.Staleness = 1
				}
			})
			plans := planned(t, o, c.devices, 1<<40)
			if _, err := pipeline.TrainOn(context.Background(), o, devs); err != nil {
				t.Fatal(err)
			}
			for k, d := range devs {
				peak, slack := d.(*cuda.Device).Memory().Peak, int64(0)
				for _, it := range plans[k].Items {
					if it.Name == "margin" || it.Name == "rows under way" || it.Name == "gradients under way" {
						slack += it.Bytes
					}
				}
				if over := plans[k].OnGPU - peak; over < 0 || over > slack+peak/50 {
					t.Errorf("device %d: planned %d bytes, held %d, %d more were for what may be under way\n%s", k, plans[k].OnGPU, peak, slack, plans[k])
				}
			}
		})
	}
}

// The least limit that a refused run is told of is the least: with it the run is made, and
// holds no more; with a byte less it is refused.
func TestTheLeastThatWouldDo(t *testing.T) {
	for i, hidden := range map[int]int{0: 3000, 2: 900} {
		n := networks[i]
		t.Run(n.name, func(t *testing.T) {
			wide := n.options(t, func(c *engine.Config) { c.Hidden, c.Intervals, c.Epochs = hidden, 1, 1 })
			all := planned(t, wide, 1, 1<<40)[0].OnGPU
			none := planned(t, wide, 1, 1<<20)[0]
			least := none.Limit + none.Short
			if none.Verdict != spill.Refused || least >= all {
				t.Fatalf("%v: %d bytes at least, %d resident", none.Verdict, least, all)
			}
			if p := planned(t, wide, 1, least-1)[0]; p.Verdict != spill.Refused {
				t.Errorf("with a byte less than %d: %v", least, p.Verdict)
			}
			// So is that with which blocks are summed at once, and a byte less has each alone.
			for _, limit := range []int64{least, all - 1, all} {
				plan := planned(t, wide, 1, limit)[0]
				if together := plan.Verdict == spill.Resident && !plan.Alone; together != (limit == all) {
					t.Errorf("with %d bytes of %d: %v, blocks alone: %v", limit, all, plan.Verdict, plan.Alone)
				}
				dev, err := cuda.Open(cuda.Options{Driver: cuemu.Driver(t), Memory: limit})
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				if err := dev.Apply(plan); err != nil {
					t.Fatal(err)
				}
				if _, err := pipeline.TrainOn(context.Background(), wide, []kernels.Device{dev}); err != nil {
					t.Fatalf("with %d bytes, %v: %v\n%s", limit, plan.Verdict, err, plan)
				}
				if m := dev.Memory(); m.Peak > limit {
					t.Errorf("%d bytes were held of %d", m.Peak, limit)
				}
			}
		})
	}
}

// Two devices that stream give each other rows straight, with the bits of those that go
// through the host, and train as one that does not stream.
func TestEmulatedPairStreams(t *testing.T) {
	for _, n := range []network{networks[0], networks[2], networks[5]} {
		t.Run(n.name, func(t *testing.T) {
			short := func(c *engine.Config) { c.Epochs, c.EvalEvery = 3, 3 }
			run := func(t *testing.T, spec string, devices int) (*pipeline.Result, *shares) {
				_, devs := emulated(t, devices, spec)
				for _, d := range devs {
					if err := d.(*cuda.Device).Apply(spill.Everything(512<<10, 16)); err != nil {
						t.Fatal(err)
					}
				}
				return n.trainOn(t, devs, short)
			}
			var straight, host *pipeline.Result
			var one, two, three *shares
			t.Run("straight", func(t *testing.T) { straight, two = run(t, "peer=1;seed=5", 2) })
			t.Run("by the host", func(t *testing.T) { host, three = run(t, "peer=0;seed=6", 2) })
			t.Run("one", func(t *testing.T) {
				_, devs := emulated(t, 1, "")
				_, one = n.trainOn(t, devs, short)
			})
			if straight.WeightsSHA256 != host.WeightsSHA256 || straight.PredictionsSHA256 != host.PredictionsSHA256 {
				t.Errorf("weights %.12s straight, %.12s by the host", straight.WeightsSHA256, host.WeightsSHA256)
			}
			if two.peer == 0 || three.peer != 0 || two.rows != three.rows {
				t.Errorf("straight %d of %d bytes, by the host %d of %d", two.peer, two.rows, three.peer, three.rows)
			}
			for e := range one.losses {
				if d := math.Abs(two.losses[e]-one.losses[e]) / math.Abs(one.losses[e]); !(d <= 1e-4) {
					t.Errorf("epoch %d: the loss is %v, of one device %v", e, two.losses[e], one.losses[e])
				}
			}
		})
	}
}
