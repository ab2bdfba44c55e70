//go:build cgo && amd64 && linux

package cpu

import (
	"math"

	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// Forward applies an epilogue.
func (s *stream) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckForward(dst, x, ep, rows)
	kernels.CheckHost("Forward", dst, x, biasOf(ep))
	if !s.runs("Forward") || dst.Cols == 0 {
		return
	}
	if ep == nil {
		ep = &kernels.Epilogue{}
	}
	s.table.Forward(epilogue(ep), x.Host, x.Stride, dst.Host, dst.Stride, dst.Cols, rows.Lo, rows.Hi)
}

// Backward applies an epilogue's derivative.
func (s *stream) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckBackward(dx, dy, y, ep, rows)
	kernels.CheckHost("Backward", dx, dy, y)
	if !s.runs("Backward") || dx.Cols == 0 {
		return
	}
	if ep == nil {
		ep = &kernels.Epilogue{}
	}
	s.table.Backward(epilogue(ep), dy.Host, dy.Stride, y.Host, y.Stride, dx.Host, dx.Stride, dx.Cols, rows.Lo, rows.Hi)
}

// ColSum adds the rows.
func (s *stream) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckColSum(dst, x, rows)
	kernels.CheckHost("ColSum", dst, x)
	if !s.runs("ColSum") || x.Cols == 0 {
		return
	}
	s.table.ColSum(x.Host, x.Stride, dst.Host, x.Cols, rows.Lo, rows.Hi)
}

// SoftmaxXent is softmax cross-entropy with its gradient.
func (s *stream) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, rows kernels.Span) {
	kernels.CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
	kernels.CheckHost("SoftmaxXent", grad, logits, classW)
	if !s.runs("SoftmaxXent") {
		return
	}
	if logits.Cols == 0 { // every label is below 0
		loss[0] = 0
		return
	}
	var ldg int
	if grad != nil {
		ldg = grad.Stride
	}
	loss[0] = s.table.Xent(logits.Host, logits.Stride, host(grad), ldg, labels, host(classW), scale, logits.Cols, rows.Lo, rows.Hi)
}

// Add adds two matrices.
func (s *stream) Add(dst, a, b *kernels.Mat) {
	kernels.CheckAdd(dst, a, b)
	kernels.CheckHost("Add", dst, a, b)
	if !s.runs("Add") || dst.Cols == 0 {
		return
	}
	s.table.Add(a.Host, a.Stride, b.Host, b.Stride, dst.Host, dst.Stride, dst.Rows, dst.Cols)
}

// Adam is one step; the formula is in kernels.Stream.
func (s *stream) Adam(p, g, m, v *kernels.Mat, h kernels.Adam) {
	kernels.CheckAdam(p, g, m, v, h)
	kernels.CheckHost("Adam", p, g, m, v)
	if !s.runs("Adam") || p.Cols == 0 {
		return
	}
	b1, b2, step := float64(h.Beta1), float64(h.Beta2), float64(h.Step)
	s.table.Adam(p.Host, p.Stride, g.Host, g.Stride, m.Host, m.Stride, v.Host, v.Stride, p.Rows, p.Cols, native.AdamStep{
		LRStep:     float32(float64(h.LR) / (1 - math.Pow(b1, step))),
		InvSqrtBC2: float32(1 / math.Sqrt(1-math.Pow(b2, step))),
		Beta1:      h.Beta1,
		Beta2:      h.Beta2,
		OneBeta1:   float32(1 - b1),
		OneBeta2:   float32(1 - b2),
		Eps:        h.Eps,
		L2:         h.WeightDecay,
		Decay:      float32(1 - float64(h.LR)*float64(h.WeightDecay)),
		Decoupled:  h.Decoupled,
	})
}

// SGD is one step; the formula is in kernels.Stream.
func (s *stream) SGD(p, g, m *kernels.Mat, h kernels.SGD) {
	kernels.CheckSGD(p, g, m, h)
	kernels.CheckHost("SGD", p, g, m)
	if !s.runs("SGD") || p.Cols == 0 {
		return
	}
	step := native.SGDStep{LR: h.LR, Momentum: h.Momentum, L2: h.WeightDecay, First: h.Step == 1}
	if h.Momentum == 0 {
		m = nil // it is not touched
	}
	var ldm int
	if m != nil {
		ldm = m.Stride
	}
	s.table.SGD(p.Host, p.Stride, g.Host, g.Stride, host(m), ldm, p.Rows, p.Cols, step)
}
