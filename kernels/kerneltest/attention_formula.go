package kerneltest

import (
	"math"

	"dorylus/kernels"
)

// layer is the operands of p and the dumb formulas over them. Rows are those of
// csr; turned is a gather along the transpose, whose rows are sources.
type layer struct {
	attend
	csr       *kernels.CSR
	g         kernels.Graph
	at        kernels.Attention
	selfW     *array
	x, as, ad *array
	turned    bool
	last      struct { // what edges gave last: columns of a head share it
		r, h       int
		list       []edge
		top, total float64 // the largest score, and the sum of edge.p
	}
}

// operands makes what forward and backward read.
func (p attend) operands(t *trial, turned bool) *layer {
	csr := toy(t.rng, p.rows, p.cols, p.val)
	if p.degree > 0 {
		csr = crowd(t.rng, p.rows, p.cols, p.degree, p.val)
	}
	if p.degrees != nil {
		csr = uneven(t.rng, p.cols, p.val, p.degrees)
	}
	for e, w := range csr.Val { // of -3 to 3: 0, 0.5, 1 and 1.5
		csr.Val[e] = float32(math.Abs(float64(w))) / 2
		if p.muted(int(csr.Col[e])) {
			csr.Val[e] = 0
		}
	}
	hold(t, "RowPtr", csr.RowPtr)
	hold(t, "Col", csr.Col)
	hold(t, "Val", csr.Val)
	l := &layer{attend: p, csr: csr, g: t.load(csr), turned: turned}
	if l.fill == nil {
		l.fill = random(t.rng, false)
	}
	if p.mute != nil && !turned {
		l.fill = p.spoil(l.fill, math.NaN())
	}
	if l.scores == nil {
		l.scores = func(int, int) float32 { return 4*t.rng.Float32() - 2 }
	}
	nsrc, ndst := p.cols, p.rows
	if turned {
		nsrc, ndst = ndst, nsrc
	}
	l.x = t.in("x", nsrc, p.heads*p.d, l.fill)
	l.as, l.ad = t.in("as", nsrc, p.heads, l.scores), t.in("ad", ndst, p.heads, l.scores)
	l.at = kernels.Attention{Heads: p.heads, Slope: p.slope, Drop: kernels.Dropout{P: p.p, Key: kernels.DropKey(t.seed, p.heads, p.d)}}
	if p.ids {
		l.at.SrcIDs, l.at.DstIDs = hold(t, "SrcIDs", scattered(t.rng, nsrc)), hold(t, "DstIDs", scattered(t.rng, ndst))
	}
	l.at.Self.On = p.self
	if p.selfCol {
		l.at.Self.Col = hold(t, "Self.Col", selfCols(t.rng, p.rows, p.cols))
	}
	if p.selfW {
		l.selfW = t.col("self weight", p.rows, func(r, _ int) float32 { return float32(r%4) / 2 })
		l.at.Self.W = l.selfW.view
	}
	return l
}

// An edge is one term of a row for one head.
type edge struct {
	u, v    int
	w, s    float64
	slope   float64 // of s
	keep    float64 // 0, or 1/(1-P)
	rounded float64 // relative error of exp(s - shift), without that of the shift
	p       float64 // w·exp(s - the largest s of the list)
}

// edges lists the terms of row r for head h, until it is called for others.
func (l *layer) edges(r, h int) []edge {
	if l.last.list != nil && l.last.r == r && l.last.h == h {
		return l.last.list
	}
	list := l.last.list[:0]
	add := func(other int, w float64) {
		if w == 0 {
			return
		}
		e := edge{u: other, v: r, w: w, slope: 1, keep: 1}
		if l.turned {
			e.u, e.v = r, other
		}
		z := l.as.val(e.u, h) + l.ad.val(e.v, h)
		if !(z > 0) {
			e.slope = float64(l.slope)
		}
		e.s = z * e.slope
		e.rounded = u * (10 + 3*math.Abs(z))
		if l.p > 0 {
			e.keep = 0
			row := kernels.DropRow(l.at.Drop.Key, id(l.at.DstIDs, e.v))
			if kernels.DropKeep(row, uint32(id(l.at.SrcIDs, e.u))*uint32(l.heads)+uint32(h), l.at.Drop.Threshold()) {
				e.keep = float64(l.at.Drop.KeepScale())
			}
		}
		list = append(list, e)
	}
	if l.self {
		at := r
		if l.selfCol {
			at = int(l.at.Self.Col[r])
		}
		if at >= 0 {
			add(at, one(l.selfW, r))
		}
	}
	for e := l.csr.RowPtr[r]; e < l.csr.RowPtr[r+1]; e++ {
		w := 1.0
		if l.csr.Val != nil {
			w = float64(l.csr.Val[e])
		}
		add(int(l.csr.Col[e]), w)
	}
	l.last.r, l.last.h, l.last.list = r, h, list
	l.last.top, l.last.total = top(list), 0
	for i := range list {
		e := &list[i]
		e.p = e.w * math.Exp(e.s-l.last.top)
		l.last.total += e.p
	}
	return list
}

func id(ids []int32, i int) int32 {
	if ids == nil {
		return int32(i)
	}
	return ids[i]
}

// top is the largest score: what a computation may subtract.
func top(list []edge) float64 {
	t := math.Inf(-1)
	for _, e := range list {
		t = max(t, e.s) // NaN if there is one
	}
	return t
}

// lse is the logarithm of the sum of exponentials.
func lse(list []edge) value {
	if len(list) == 0 {
		return exactly(math.Inf(-1))
	}
	t := top(list)
	if math.IsInf(t, 1) {
		return exactly(math.NaN())
	}
	var sum, err float64
	for _, e := range list {
		p := e.w * math.Exp(e.s-max(t, -math.MaxFloat32))
		sum += p
		if p > 0 {
			err += p * (e.rounded + u*math.Abs(e.s-t))
		}
	}
	w := value{v: t + math.Log(sum)}
	w.tol = err/sum + u*(float64(len(list))+8+4*math.Abs(math.Log(sum))+math.Abs(w.v))
	return w
}

// forward is dst[v, h·d+c] before the epilogue, and the roundings that its
// tolerance is made of.
func (l *layer) forward(v, c int) (s sum, roundings int) {
	list := l.edges(v, c/l.d)
	t := l.last.top
	var err, lost float64
	for _, e := range list {
		a := e.p / l.last.total
		s.add(a*e.keep, l.x.val(e.u, c))
		rel := e.rounded + u*math.Abs(e.s-t)
		if a > 0 {
			err += a * rel
			lost += a * e.keep * rel * math.Abs(l.x.val(e.u, c))
		}
		lost += 0x1p-120 * e.w * math.Abs(l.x.val(e.u, c)) // exponentials below the normal numbers
	}
	lost += s.abs * (err + u*float64(2*len(list)+12))
	s.n = 0
	if r := lost / (u * s.abs); r < 1e9 {
		return s, int(r) + 1
	}
	// Nothing to compare, or scores that are either equal or apart by more than
	// any rounding.
	return s, 100
}

// gradients are those of one row and head.
type gradients struct{ dot, dad, das value }

// narrow is the per-head results of row r; dots is dot of the destinations.
func (l *layer) narrow(r, h int, lse, dots, dy *array) (b gradients) {
	list := l.edges(r, h)
	n := float64(len(list))
	var aq, aqs, as, aqAbs, aqsAbs, asAbs, das, dasAbs float64
	for _, e := range list {
		shift := lse.val(e.v, h)
		alpha := e.w * math.Exp(e.s-shift)
		var q, qAbs float64
		for c := h * l.d; c < (h+1)*l.d; c++ {
			q += dy.val(e.v, c) * l.x.val(e.u, c)
			qAbs += math.Abs(dy.val(e.v, c) * l.x.val(e.u, c))
		}
		q, qAbs = q*e.keep, qAbs*e.keep
		rel := e.rounded + u*(math.Abs(e.s-shift)+float64(l.d)+2*n+16)
		aq += alpha * q
		aqAbs += alpha * qAbs * rel
		aqs += alpha * q * e.slope
		aqsAbs += alpha * qAbs * e.slope * rel
		as += alpha * e.slope
		asAbs += alpha * e.slope * rel
		if dots != nil {
			d := dots.val(e.v, h)
			das += alpha * (q - d) * e.slope
			dasAbs += alpha * (qAbs + math.Abs(d)) * e.slope * rel
		}
	}
	b.dot = value{v: aq, tol: aqAbs + 0x1p-120}
	b.dad = value{v: aqs - aq*as, tol: aqsAbs + aqAbs*as + math.Abs(aq)*asAbs + 4*u*math.Abs(aq*as) + 0x1p-120}
	b.das = value{v: das, tol: dasAbs + 0x1p-120}
	return b
}

// wide is dx[u, h·d+c].
func (l *layer) wide(r, c int, lse, dy *array) value {
	var w value
	list := l.edges(r, c/l.d)
	for _, e := range list {
		shift := lse.val(e.v, c/l.d)
		alpha := e.w * math.Exp(e.s-shift) * e.keep
		w.v += alpha * dy.val(e.v, c)
		w.tol += alpha * math.Abs(dy.val(e.v, c)) * (e.rounded + u*(math.Abs(e.s-shift)+2*float64(len(list))+10))
	}
	w.tol += 0x1p-120
	return w
}
