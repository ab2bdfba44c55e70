//go:build cgo && amd64 && linux

package cpu

import (
	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// A Probe measures what the machine can do, with the instruction set of a device:
// the ceilings that a benchmark compares kernels with. It checks nothing.
type Probe struct{ t *native.Table }

// NewProbe is a probe with d's instruction set; d must come from this package.
func NewProbe(d kernels.Device) (Probe, error) {
	t, err := table(d)
	return Probe{t}, err
}

// Gather reads the rows of x that ids names, whole strides, and adds them up in
// registers. Rows are prefetched ahead rows before their use; 0: never.
func (p Probe) Gather(x *kernels.Mat, ids []int32, ahead int) {
	var out [128]float32
	p.t.ProbeGather(x.Host, x.Stride, ids, x.Stride, ahead, out[:])
}

// Copy copies src to dst front to back.
func (p Probe) Copy(dst, src []float32) { p.t.ProbeCopy(src, dst) }

// FMA runs rounds of independent multiply-adds in registers and returns the
// number of floating-point operations.
func (p Probe) FMA(rounds int) float64 { return p.t.ProbeFMA(rounds) }

// Crossing calls into C and back.
func (p Probe) Crossing(x []float32) { p.t.ProbeNothing(x, x) }

// Naive is the plain three-loop gather as the compiler vectorises it for AVX2:
// dst[v,:] = sum of w[e]*x[u,:] over the in-edges e = (u,v) of v in rows.
func (p Probe) Naive(dst *kernels.Mat, g *kernels.CSR, x *kernels.Mat, rows kernels.Span) {
	native.NaiveSpMM(g.RowPtr, g.Col, g.Val, x.Host, x.Stride, dst.Host, dst.Stride, x.Cols, rows.Lo, rows.Hi)
}
