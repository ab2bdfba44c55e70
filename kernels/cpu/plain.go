//go:build cgo && amd64 && linux

package cpu

import (
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// Ops that have no native code yet run on the reference.

func (s *stream) reference() kernels.Stream {
	if s.plain == nil {
		d, _ := ref.Open()
		s.plainDev = d
		s.plain, _ = d.NewStream()
	}
	return s.plain
}

func (s *stream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	if s.runs("AddGEMM") {
		s.reference().AddGEMM(dst, a, b, t, ep)
	}
}
func (s *stream) AddRows(dst, src *kernels.Mat, ids []int32) {
	if s.runs("AddRows") {
		s.reference().AddRows(dst, src, ids)
	}
}
func (s *stream) AddScaled(dst, a, b *kernels.Mat, c float32, by *kernels.Mat) {
	if s.runs("AddScaled") {
		s.reference().AddScaled(dst, a, b, c, by)
	}
}
func (s *stream) Dot(dst, a, b *kernels.Mat) {
	if s.runs("Dot") {
		s.reference().Dot(dst, a, b)
	}
}
func (s *stream) ColDot(dst, a, b *kernels.Mat) {
	if s.runs("ColDot") {
		s.reference().ColDot(dst, a, b)
	}
}
func (s *stream) on(op string, g kernels.Graph, f func(kernels.Graph)) {
	r := s.own(op, g)
	if !s.runs(op) {
		return
	}
	s.reference()
	p, err := s.plainDev.Load(r.CSR)
	if err != nil {
		s.fail(op, err)
		return
	}
	f(p)
	s.plainDev.Unload(p)
}
func (s *stream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	s.on("SpMMMax", g, func(g kernels.Graph) { s.plain.SpMMMax(dst, arg, g, x, rows) })
}
func (s *stream) SpMMMaxBack(dx *kernels.Mat, g kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	s.on("SpMMMaxBack", g, func(g kernels.Graph) { s.plain.SpMMMaxBack(dx, g, dy, arg, rows) })
}
func (s *stream) HeadDot(dst, x, a *kernels.Mat) {
	if s.runs("HeadDot") {
		s.reference().HeadDot(dst, x, a)
	}
}
func (s *stream) HeadOuterAdd(dx, d, a *kernels.Mat) {
	if s.runs("HeadOuterAdd") {
		s.reference().HeadOuterAdd(dx, d, a)
	}
}
func (s *stream) HeadDotGrad(da, d, x *kernels.Mat) {
	if s.runs("HeadDotGrad") {
		s.reference().HeadDotGrad(da, d, x)
	}
}
func (s *stream) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	if s.runs("HeadMean") {
		s.reference().HeadMean(dst, x, heads, ep)
	}
}
func (s *stream) HeadSpread(dx, d *kernels.Mat, heads int) {
	if s.runs("HeadSpread") {
		s.reference().HeadSpread(dx, d, heads)
	}
}
func (s *stream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	if s.runs("LayerNorm") {
		s.reference().LayerNorm(dst, stat, x, gamma, beta, eps)
	}
}
func (s *stream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	if s.runs("LayerNormBack") {
		s.reference().LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	}
}
func (s *stream) ColMoments(dst, x *kernels.Mat) {
	if s.runs("ColMoments") {
		s.reference().ColMoments(dst, x)
	}
}
func (s *stream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	if s.runs("ColAffine") {
		s.reference().ColAffine(dst, x, y, a, b, d)
	}
}
func (s *stream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	if s.runs("SigmoidBCE") {
		s.reference().SigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	}
}
