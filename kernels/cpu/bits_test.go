//go:build cgo && amd64 && linux

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/kernels"
)

const seed = 11

// drawn is a random graph with rows of 0 to 2*degree edges.
func drawn(r *rand.Rand, rows, cols, degree int, weighted bool) *kernels.CSR {
	g := &kernels.CSR{Cols: cols, RowPtr: []int64{0}}
	for v := range rows {
		n := r.IntN(2*degree + 1)
		if v%17 == 3 {
			n = 0
		}
		row := make([]int32, n)
		for i := range row {
			row[i] = int32(r.IntN(cols))
		}
		slices.Sort(row)
		g.Col = append(g.Col, row...)
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	if weighted {
		g.Val = make([]float32, len(g.Col))
		for i := range g.Val {
			g.Val[i] = r.Float32()
		}
	}
	return g
}

// A bench of operands for one gather on one device.
type gatherCase struct {
	dev    kernels.Device
	s      kernels.Stream
	g      kernels.Graph
	x, dst *kernels.Mat
	ga     kernels.Gather
	free   []*kernels.Mat
}

func newGather(t *testing.T, o Options, csr *kernels.CSR, cols, variant int) *gatherCase {
	t.Helper()
	dev, err := OpenWith(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &gatherCase{dev: dev}
	if c.g, err = dev.Load(csr); err != nil {
		t.Fatal(err)
	}
	if c.s, err = dev.NewStream(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, uint64(variant)))
	mat := func(rows, cols int) *kernels.Mat {
		m, err := dev.Alloc(rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		for v := range rows {
			for i := range m.Row(v) {
				m.Row(v)[i] = float32(r.NormFloat64())
			}
		}
		c.free = append(c.free, m)
		return m
	}
	c.x, c.dst = mat(csr.Cols, cols), mat(csr.Rows(), cols)
	if variant&1 != 0 {
		c.ga.Scale = kernels.Scale{Row: mat(csr.Rows(), 1), Col: mat(csr.Cols, 1)}
	}
	if variant&2 != 0 {
		c.ga.Self = kernels.Self{On: true, Col: make([]int32, csr.Rows()), W: mat(csr.Rows(), 1)}
		for v := range c.ga.Self.Col {
			c.ga.Self.Col[v] = int32(v%(csr.Cols+1)) - 1
		}
	}
	if variant&4 != 0 {
		c.ga.Ep = &kernels.Epilogue{Bias: mat(1, cols), Act: kernels.ELU, Drop: kernels.Dropout{P: 0.4, Key: 5}}
	}
	t.Cleanup(func() {
		for _, m := range c.free {
			dev.Free(m)
		}
		dev.Unload(c.g)
		if err := c.s.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// run gathers the spans, one call each.
func (c *gatherCase) run(t *testing.T, spans ...kernels.Span) []uint32 {
	t.Helper()
	for v := range c.dst.Rows {
		for i := range c.dst.Row(v) {
			c.dst.Row(v)[i] = float32(math.NaN())
		}
	}
	for _, s := range spans {
		c.s.SpMM(c.dst, c.g, c.x, c.ga, s)
	}
	if err := c.s.Wait(); err != nil {
		t.Fatal(err)
	}
	var bits []uint32
	for v := range c.dst.Rows {
		for _, f := range c.dst.Row(v) {
			bits = append(bits, math.Float32bits(f))
		}
	}
	return bits
}

func sameBits(t *testing.T, what string, cols int, got, want []uint32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("seed %d, %s: row %d column %d is %v, want the bits of %v", seed, what, i/cols, i%cols,
				math.Float32frombits(got[i]), math.Float32frombits(want[i]))
		}
	}
}

// Neither tiles nor spans change a bit of a gather.
func TestGatherBits(t *testing.T) {
	const rows, cols = 300, 400
	widths, variants := []int{16, 41, 64, 72, 130, 200}, []int{0, 1, 2, 3, 4, 5, 6, 7}
	if watched { // detectors make it slow
		widths, variants = []int{41, 130}, []int{0, 7}
	}
	for _, isa := range ISAs() {
		for _, weighted := range []bool{false, true} {
			csr := drawn(rand.New(rand.NewPCG(seed, 1)), rows, cols, 60, weighted)
			for _, width := range widths {
				for _, variant := range variants {
					name := fmt.Sprintf("%s weighted=%v width=%d variant=%d", isa, weighted, width, variant)
					all := kernels.Span{Hi: rows}
					flat := newGather(t, Options{ISA: isa, TileBytes: -1}, csr, width, variant)
					want := flat.run(t, all)
					cut := []kernels.Span{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 150}, {Lo: 150, Hi: 150}, {Lo: 150, Hi: 299}, {Lo: 299, Hi: 300}}
					sameBits(t, name+" in spans", width, flat.run(t, cut...), want)
					for _, tile := range []int{1 << 10, 8 << 10} {
						tiled := newGather(t, Options{ISA: isa, TileBytes: tile}, csr, width, variant)
						p, err := tiled.g.(*graph).plan(tiled.x, all)
						if err != nil || p.tile == nil {
							t.Fatalf("%s: tiles of %d bytes are not used (%v): the test tests nothing", name, tile, err)
						}
						sameBits(t, fmt.Sprintf("%s tile=%d", name, tile), width, tiled.run(t, all), want)
						sameBits(t, fmt.Sprintf("%s tile=%d in spans", name, tile), width, tiled.run(t, kernels.Span{Hi: 130}, kernels.Span{Lo: 130, Hi: rows}), want)
					}
				}
			}
		}
	}
}

// Scratch and tables are counted while they are held, and gone afterwards.
func TestMemoryByPurpose(t *testing.T) {
	csr := drawn(rand.New(rand.NewPCG(seed, 1)), 300, 400, 60, false)
	c := newGather(t, Options{TileBytes: 1 << 10}, csr, 200, 0)
	c.run(t, kernels.Span{Hi: 300})
	m, ok := MemoryOf(c.dev)
	if !ok || m.TileBytes == 0 || m.ScratchBytes == 0 || m.Matrices != 2 || m.Graphs != 1 {
		t.Errorf("memory is %+v (%v): want 2 matrices, 1 graph, and bytes for tiles and scratch", m, ok)
	}
	if m.PeakBytes < m.MatrixBytes+m.TileBytes+m.ScratchBytes {
		t.Errorf("peak of %d bytes is below what is held: %+v", m.PeakBytes, m)
	}
}
