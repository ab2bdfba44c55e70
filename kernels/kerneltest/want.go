package kerneltest

import (
	"math"

	"dorylus/kernels"
)

// drops says whether the mask of d drops (r,c).
func drops(d kernels.Dropout, r, c int) bool {
	if d.P == 0 {
		return false
	}
	id := int32(r)
	if d.IDs != nil {
		id = d.IDs[r]
	}
	return !kernels.DropKeep(kernels.DropRow(d.Key, id), uint32(c), d.Threshold())
}

// act is the activation of x and the roundings it may add, in units of u of 1:
// exp(x)-1 and tanh come from approximations whose error is a few units of the
// last place of numbers near 1.
func act(a kernels.Act, x float64) (v, units float64) {
	switch a {
	case kernels.ReLU:
		if x <= 0 {
			return 0, 0
		}
	case kernels.LeakyReLU:
		if x <= 0 {
			return 0.2 * x, 0
		}
	case kernels.ELU:
		if x <= 0 {
			return math.Exp(x) - 1, 8
		}
	case kernels.Tanh:
		return math.Tanh(x), 8
	}
	return x, 0
}

// epilogue finishes the sum of (r,c): an epilogue's bias is one more term, no
// activation is steeper than 1, and dropout multiplies value and error alike.
func epilogue(s sum, extra int, ep *kernels.Epilogue, bias *array, r, c int) value {
	if ep == nil {
		return s.value(extra)
	}
	if bias != nil {
		s.add(bias.val(0, c))
	}
	w := s.value(extra)
	before := w.v
	var units float64
	w.v, units = act(ep.Act, w.v)
	w.tol += units * u
	if ep.Act == kernels.LeakyReLU && before <= 0 {
		w.tol += 2 * u * math.Abs(w.v) // 0.2 itself is rounded
	}
	if drops(ep.Drop, r, c) {
		return exactly(0)
	}
	if ep.Drop.P > 0 {
		keep := float64(ep.Drop.KeepScale())
		w.v *= keep
		w.tol *= keep
		if !s.exact {
			w.tol += 2 * u * math.Abs(w.v)
		}
	}
	return w
}

// backward is dx of (r,c) for dy and the output y.
func backward(ep *kernels.Epilogue, dy, y float64, r, c int) value {
	if ep == nil {
		return exactly(dy)
	}
	if drops(ep.Drop, r, c) {
		return exactly(0)
	}
	keep := 1.0
	if ep.Drop.P > 0 {
		keep = float64(ep.Drop.KeepScale())
	}
	a, slope := y/keep, 1.0
	units := 2.0
	switch ep.Act {
	case kernels.ReLU:
		if a <= 0 {
			return exactly(0)
		}
	case kernels.LeakyReLU:
		if a <= 0 {
			slope, units = 0.2, 4
		}
	case kernels.ELU:
		if a <= 0 {
			slope, units = a+1, 8
		}
	case kernels.Tanh:
		slope, units = 1-a*a, 8
	}
	d := dy * keep
	return value{v: d * slope, tol: units * u * math.Abs(d)}
}

// gathered is the sum of SpMM for (v,c), before the row scale.
type gathered struct {
	g        *kernels.CSR
	x        *array
	rs, cs   *array // nil: 1
	w, selfW *array
	self     kernels.Self
	exact    bool
}

func one(a *array, i int) float64 {
	if a == nil {
		return 1
	}
	return a.val(i, 0)
}

// weight is the value of edge e.
func (ga *gathered) weight(e int64) float64 {
	switch {
	case ga.w != nil:
		return ga.w.val(int(e), 0)
	case ga.g.Val != nil:
		return float64(ga.g.Val[e])
	}
	return 1
}

// want is the sum over row v's own term and its in-edges, scaled.
func (ga *gathered) want(v, c int) sum {
	s := sum{exact: ga.exact}
	if ga.self.On {
		u := v
		if ga.self.Col != nil {
			u = int(ga.self.Col[v])
		}
		if u >= 0 {
			s.add(one(ga.selfW, v), one(ga.cs, u), ga.x.val(u, c))
		}
	}
	for e := ga.g.RowPtr[v]; e < ga.g.RowPtr[v+1]; e++ {
		u := int(ga.g.Col[e])
		s.add(one(ga.cs, u), ga.weight(e), ga.x.val(u, c))
	}
	if s.n > 0 {
		f := one(ga.rs, v)
		s.v *= f
		s.abs *= math.Abs(f)
	}
	return s
}
