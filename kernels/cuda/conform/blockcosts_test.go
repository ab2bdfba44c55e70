//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"slices"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/cuda/internal/watch"
)

// What a device takes at most for ops on blocks is to the byte what Costs says, in one
// group of blocks and in several.
func TestBlockCosts(t *testing.T) {
	blocks := &kernels.Blocks{Cuts: []int32{0}}
	for i, rows := range []int32{700, 0, 513, 1, 2000, 30, 1100} {
		blocks.Cuts = append(blocks.Cuts, blocks.Cuts[i]+rows)
		blocks.Leaves = append(blocks.Leaves, int32(i+i/3))
	}
	rows := int(blocks.Cuts[len(blocks.Cuts)-1])
	costs := cuda.Costs{Precision: "fp32"}
	targets := &kernels.CSR{Cols: 5, RowPtr: make([]int64, rows+1), Col: make([]int32, rows)}
	for i := range rows {
		targets.RowPtr[i+1] = int64(i + 1)
	}
	labels, loss := make([]int32, rows), make([]float64, blocks.Len())
	type op struct {
		name string
		m, n int // of the sum
		run  func(s kernels.BlockSummer, dst, a, b *kernels.Mat)
		want func() int64
	}
	taken := func(scratch int64, lists [][]int32) int64 {
		sum := costs.Block(scratch)
		for i, l := range lists {
			if slices.ContainsFunc(lists[:i], func(o []int32) bool { return slices.Equal(l, o) }) {
				continue // known by what is in it
			}
			sum += costs.Block(4 * int64(len(l)))
		}
		return sum
	}
	ops := []op{
		{"BlockGEMM", 9, 5, func(s kernels.BlockSummer, dst, a, b *kernels.Mat) { s.BlockGEMM(dst, a, b, blocks) },
			func() int64 { return taken(costs.BlockProduct(blocks, 9, 5)) }},
		{"BlockColSum", 1, 9, func(s kernels.BlockSummer, dst, a, b *kernels.Mat) { s.BlockColSum(dst, a, blocks) },
			func() int64 { return taken(costs.BlockRows(blocks, 1, 9)) }},
		{"BlockHeadDotGrad", 1, 9, func(s kernels.BlockSummer, dst, a, b *kernels.Mat) {
			s.BlockHeadDotGrad(dst, &kernels.Mat{Rows: rows, Cols: 1, Stride: b.Stride, Addr: b.Addr}, a, blocks)
		}, func() int64 { return taken(costs.BlockRows(blocks, 1, 9)) }},
		{"BlockSoftmaxXent", 1, 1, func(s kernels.BlockSummer, _, a, b *kernels.Mat) {
			s.BlockSoftmaxXent(nil, loss, b, labels, nil, 1, blocks)
		}, func() int64 { return taken(costs.BlockLosses(blocks, rows)) }},
		{"BlockSigmoidBCE", 1, 1, func(s kernels.BlockSummer, _, a, b *kernels.Mat) {
			s.BlockSigmoidBCE(nil, loss, b, targets, labels, nil, 1, blocks)
		}, func() int64 {
			return taken(costs.BlockLosses(blocks, rows)) + costs.Offsets(rows+1)
		}},
	}
	defer func() { watch.Parts = 0 }()
	for _, watch.Parts = range []int64{0, 8 << 10, 1} {
		for _, o := range ops {
			dev, err := cuda.Open(cuda.Options{Driver: cuemu.Driver(t)})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range [][]int32{labels, targets.Col} {
				if err := dev.Keep(l); err != nil {
					t.Fatal(err)
				}
			}
			var ms [3]*kernels.Mat
			for i, size := range [][2]int{{o.m, o.n}, {rows, 9}, {rows, 5}} {
				m, err := dev.Alloc(size[0], size[1])
				if err != nil {
					t.Fatal(err)
				}
				ms[i] = m
			}
			before := dev.Memory().Peak
			s, err := dev.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time all is there
				o.run(s.(kernels.BlockSummer), ms[0], ms[1], ms[2])
				if err := s.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := dev.Memory().Peak-before, o.want(); got != want {
				t.Errorf("%s, groups of %d bytes: %d bytes taken, %d planned", o.name, watch.Parts, got, want)
			}
			for _, m := range ms {
				dev.Free(m)
			}
			dev.Drop(labels)
			dev.Drop(targets.Col)
			for _, c := range []interface{ Close() error }{s, dev} {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
