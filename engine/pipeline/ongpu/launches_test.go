//go:build cuda && cgo && linux && (amd64 || arm64)

package ongpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/kernels"
)

// epochs has the emulated device's counters of each epoch, evaluations apart.
type epochs struct {
	emu  *cuemu.Control
	each []map[string]int64
}

func (e *epochs) Event(ev engine.Event) {
	if _, ok := ev.(engine.EpochDone); !ok {
		return
	}
	now := map[string]int64{}
	for _, name := range []string{"bytes_to_device", "bytes_to_host"} {
		now[name] = e.emu.Counter(name)
	}
	for _, kernel := range e.emu.Kernels() {
		n := e.emu.Counter("launches/" + kernel)
		if strings.HasPrefix(kernel, "dk_spmm_") { // in the forms that the rows' degrees ask for
			kernel, n = "dk_spmm", min(n, 1)
		}
		if n != 0 {
			now[kernel] = n
		}
	}
	now["launches"] = e.emu.Counter("launches")
	e.each = append(e.each, now)
	e.emu.Reset()
}

// epoch is what the third epoch of a run of one interval launches and moves.
func (n network) epoch(t *testing.T, blocks int) (counted map[string]int64) {
	t.Helper()
	t.Run(fmt.Sprintf("%d blocks", blocks), func(t *testing.T) { counted = n.counted(t, blocks) })
	return counted
}

func (n network) counted(t *testing.T, blocks int) map[string]int64 {
	t.Helper()
	raw, err := dataset.Synth(context.Background(), fmt.Sprintf("synth:sbm,vertices=%d,degree=6,classes=%d,features=10,seed=3", 16*blocks-3, classes))
	if err != nil {
		t.Fatal(err)
	}
	if n.data == several {
		raw.Multi = &kernels.CSR{Cols: classes, RowPtr: []int64{0}}
		for _, l := range raw.Labels {
			raw.Multi.Col = append(raw.Multi.Col, l)
			raw.Multi.RowPtr = append(raw.Multi.RowPtr, int64(len(raw.Multi.Col)))
		}
		raw.Labels = nil
	}
	st, err := prepare.Build(context.Background(), raw, prepare.Options{Order: "degree", BlockRows: 16})
	if err != nil {
		t.Fatal(err)
	}
	emu, devs := emulated(t, 1, "")
	seen := &epochs{emu: emu}
	o := pipeline.Options{Config: engine.DefaultConfig(n.model), Store: st, Split: st.Splits[0], Device: devs[0], Listener: seen}
	c := &o.Config
	c.Mode, c.Epochs, c.EvalEvery, c.Hidden, c.Intervals = "gpu", 4, 100, 6, 1
	n.set(c)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.Train(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return seen.each[2]
}

// An epoch of one interval launches as many kernels on a graph of many blocks as on one of
// few, and what it brings to the host grows by the blocks' losses alone.
func TestEpochsLaunchNoMoreForMoreBlocks(t *testing.T) {
	for _, n := range []network{
		{"gcn", "gcn", dense, func(c *engine.Config) { c.InputDropout = 0 }},
		{"gat", "gat", dense, func(c *engine.Config) { c.Heads, c.InputDropout = 2, 0 }},
		{"sage several labels", "sage", several, func(c *engine.Config) { c.InputDropout = 0 }},
	} {
		t.Run(n.name, func(t *testing.T) {
			if cuemu.OnGPU() {
				t.Skip("NOT RUN: only the emulated device counts launches")
			}
			few, many := n.epoch(t, 10), n.epoch(t, 57)
			if few == nil || many == nil {
				t.FailNow()
			}
			for name := range many {
				if name == "launches" { // in all, for the log
					continue
				}
				extra := many[name] - few[name]
				if name == "bytes_to_host" {
					extra -= 8 * 47 // a loss each
				}
				if extra > 0 {
					t.Errorf("%d %s in an epoch of 10 blocks, %d in one of 57", few[name], name, many[name])
				}
			}
			var kernels []string
			for name, n := range many {
				kernels = append(kernels, fmt.Sprintf("%s %d", name, n))
			}
			slices.Sort(kernels)
			t.Logf("57 blocks: %s", strings.Join(kernels, ", "))
		})
	}
}
