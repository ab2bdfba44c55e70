package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"dorylus/engine/cost"
	"dorylus/engine/sim/rates"
)

// gpuSheet is what a data sheet says of a GPU.
type gpuSheet struct {
	memory float64 // bytes a second of its memory
	flops  float64 // fp32 operations a second
	bytes  int64   // of memory
}

// gpuSheets are by the names that the table of prices gives GPUs.
var gpuSheets = map[string]gpuSheet{
	"T4":   {320e9, 8.1e12, 16 << 30},
	"V100": {900e9, 15.7e12, 16 << 30},
	"A10G": {600e9, 31.2e12, 24 << 30},
	"A100": {1555e9, 19.5e12, 40 << 30},
	"H100": {3350e9, 67e12, 80 << 30},
	"H200": {4800e9, 67e12, 141e9},
}

// The shares of a data sheet's rates that kernels are expected to reach: estimates, since
// none has been timed.
const (
	gpuMemoryShare = 0.63 // 90 % is what copies reach, of which gathers reach 70 %
	gpuFlopsShare  = 0.5
	gpuUsable      = 0.9 // of its memory
)

// onGPUs makes p a plan of servers of type x that compute on one GPU each. Speeds that
// were given stay.
func (p *planner) onGPUs(x cost.Instance) error {
	sheet, known := gpuSheets[x.GPU]
	switch {
	case p.instance == cost.Unpriced:
		return fmt.Errorf("plan --mode=gpu: --instance=none says nothing of a GPU; name a type that has one, as p3.2xlarge")
	case x.GPUs == 0:
		return usagef("--instance=%s: %s has no GPU; name a type that has one, as %s", p.instance, x.Type, cost.DefaultInstance("gpu"))
	case !known:
		return fmt.Errorf("plan --mode=gpu: no rates are known of the GPU of %s (%q), but of %s; choose a type that has one of these",
			x.Type, x.GPU, strings.Join(slices.Sorted(maps.Keys(gpuSheets)), ", "))
	}
	p.cores, p.gpuMemory = 1, int64(gpuUsable*float64(sheet.bytes))
	p.gpuText = []string{
		fmt.Sprintf("a server computes on 1 of its %d GPUs (%s), one task after the other, in fp32; what exceeds %s of a GPU's memory is not planned: a run would stream it, slower", x.GPUs, x.GPU, sizeText(p.gpuMemory)),
	}
	if p.given == nil {
		p.given = &rates.Speeds{Gather: gpuMemoryShare * sheet.memory, Flops: gpuFlopsShare * sheet.flops, Values: gpuMemoryShare * sheet.memory}
		p.gpuText = append([]string{fmt.Sprintf("ESTIMATE, nothing was measured: rates are shares of the data sheet of a %s: %.0f %% of %.0f GB/s for rows, %.0f %% of %.3g TFLOP/s for products",
			x.GPU, 100*gpuMemoryShare, sheet.memory/1e9, 100*gpuFlopsShare, sheet.flops/1e12)}, p.gpuText...)
	}
	return nil
}

// onDevice is the part of a server's memory that lies on its GPU.
func (m *planMemory) onDevice() int64 { return m.Matrices + m.Constants + m.Edges + m.Index }
