package ref

import (
	"math"

	"dorylus/kernels"
)

// finish rounds row r of an output: dst = drop(act(acc + bias)). It uses acc.
func finish(dst []float32, acc []float64, r int, ep *kernels.Epilogue) {
	if ep != nil {
		if ep.Bias != nil {
			axpy(acc, 1, ep.Bias.Row(0))
		}
		activate(acc, ep.Act)
		drop(acc, r, ep.Drop)
	}
	dst = dst[:len(acc)]
	for c, v := range acc {
		dst[c] = float32(v)
	}
}

// activate applies a to every value of x.
func activate(x []float64, a kernels.Act) {
	switch a {
	case kernels.ReLU:
		for c, v := range x {
			if v <= 0 {
				x[c] = 0
			}
		}
	case kernels.LeakyReLU:
		for c, v := range x {
			if v <= 0 {
				x[c] = slope * v
			}
		}
	case kernels.ELU:
		for c, v := range x {
			if v <= 0 {
				x[c] = math.Expm1(v)
			}
		}
	case kernels.Tanh:
		for c, v := range x {
			x[c] = math.Tanh(v)
		}
	}
}

// slope is LeakyReLU's below zero.
const slope = 0.2

// drop applies the mask of row r.
func drop(x []float64, r int, d kernels.Dropout) {
	if d.P == 0 {
		return
	}
	row, keep, threshold := rowKey(d, r), keepScale(d), d.Threshold()
	for c := range x {
		if kernels.DropKeep(row, uint32(c), threshold) {
			x[c] *= keep
		} else {
			x[c] = 0
		}
	}
}

func keepScale(d kernels.Dropout) float64 { return float64(d.KeepScale()) }

// rowKey is the part of the mask that row r's values share.
func rowKey(d kernels.Dropout, r int) uint64 {
	id := int32(r)
	if d.IDs != nil {
		id = d.IDs[r]
	}
	return kernels.DropRow(d.Key, id)
}

// bias is the matrix that an epilogue reads, or nil.
func bias(ep *kernels.Epilogue) *kernels.Mat {
	if ep == nil {
		return nil
	}
	return ep.Bias
}

// Forward sets dst = epilogue(x).
func (s *stream) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckForward(dst, x, ep, rows)
	kernels.CheckHost("Forward", dst, x, bias(ep))
	if !s.runs("Forward") {
		return
	}
	rows = within(dst, rows)
	for r := rows.Lo; r < rows.Hi; r++ {
		acc := s.zeros(dst.Cols)
		for c, v := range x.Row(r) {
			acc[c] = float64(v)
		}
		finish(dst.Row(r), acc, r, ep)
	}
}

// Backward sets dx = dy * KeepScale * act'(y / KeepScale), 0 where the mask
// dropped.
func (s *stream) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckBackward(dx, dy, y, ep, rows)
	kernels.CheckHost("Backward", dx, dy, y)
	if !s.runs("Backward") {
		return
	}
	rows = within(dx, rows)
	for r := rows.Lo; r < rows.Hi; r++ {
		if ep == nil {
			copy(dx.Row(r), dy.Row(r))
			continue
		}
		acc := s.zeros(dx.Cols)
		for c, v := range dy.Row(r) {
			acc[c] = float64(v)
		}
		slopes(acc, y.Row(r), ep.Act, keepScale(ep.Drop))
		drop(acc, r, ep.Drop)
		finish(dx.Row(r), acc, r, nil)
	}
}

// slopes multiplies d by the derivative of a, given the outputs y = a(..)*keep.
func slopes(d []float64, y []float32, a kernels.Act, keep float64) {
	d = d[:len(y)]
	switch a {
	case kernels.ReLU:
		for c, v := range y {
			if v <= 0 {
				d[c] = 0
			}
		}
	case kernels.LeakyReLU:
		for c, v := range y {
			if v <= 0 {
				d[c] *= slope
			}
		}
	case kernels.ELU:
		for c, v := range y {
			if v <= 0 {
				d[c] *= float64(v)/keep + 1
			}
		}
	case kernels.Tanh:
		for c, v := range y {
			t := float64(v) / keep
			d[c] *= 1 - t*t
		}
	}
}

// ColSum adds the rows.
func (s *stream) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckColSum(dst, x, rows)
	kernels.CheckHost("ColSum", dst, x)
	if !s.runs("ColSum") || x.Cols == 0 {
		return
	}
	acc := s.zeros(x.Cols)
	for r := rows.Lo; r < rows.Hi; r++ {
		axpy(acc, 1, x.Row(r))
	}
	finish(dst.Row(0), acc, 0, nil)
}
