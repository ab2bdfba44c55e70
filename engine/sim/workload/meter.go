package workload

import (
	"dorylus/kernels"
)

// meter is a kernels.Stream that counts what it is asked for and does nothing.
type meter struct {
	keys  map[Key]int
	list  []Key
	units map[int]float64
	order []int
}

func newMeter() *meter { return &meter{keys: map[Key]int{}, units: map[int]float64{}} }

// add counts units of work.
func (m *meter) add(k Key, units float64) {
	if units == 0 {
		return
	}
	i, known := m.keys[k]
	if !known {
		i = len(m.list)
		m.keys[k] = i
		m.list = append(m.list, k)
	}
	if _, some := m.units[i]; !some {
		m.order = append(m.order, i)
	}
	m.units[i] += units
}

// take is what was counted since the last call.
func (m *meter) take() Amounts {
	var out Amounts
	for _, i := range m.order {
		out = append(out, Amount{i, m.units[i]})
	}
	clear(m.units)
	m.order = m.order[:0]
	return out
}

func values(x *kernels.Mat) float64 {
	if x == nil {
		return 0
	}
	return float64(x.Rows) * float64(x.Cols)
}

func (m *meter) values(n float64) { m.add(Key{Op: Values}, n) }

// shape is a graph that has sizes only. Its edges are known up to rows at which a block
// begins.
type shape struct {
	rows, cols int
	sparse     bool    // features, not edges
	at         []int   // where blocks begin, ascending
	edges      []int64 // before them
}

func (g *shape) Rows() int  { return g.rows }
func (g *shape) Cols() int  { return g.cols }
func (g *shape) Edges() int { return int(g.edges[len(g.edges)-1]) }

// in is the number of edges of a span of whole blocks.
func (g *shape) in(rows kernels.Span) float64 {
	find := func(row int) int64 {
		lo, hi := 0, len(g.at)-1
		for lo < hi {
			if mid := (lo + hi) / 2; g.at[mid] < row {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return g.edges[lo]
	}
	return float64(find(rows.Hi) - find(rows.Lo))
}

func (m *meter) epilogue(ep *kernels.Epilogue, n float64) {
	if ep != nil && (ep.Act != kernels.Identity || ep.Drop.P > 0 || ep.Bias != nil) {
		m.add(Key{Op: Epilogue, Act: ep.Act, Drop: ep.Drop.P > 0}, n)
	}
}

func (m *meter) product(dst, a *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	switch t {
	case kernels.NN:
		m.add(Key{Op: Product, Cols: dst.Cols, Inner: a.Cols}, float64(dst.Rows))
	case kernels.NT:
		m.add(Key{Op: ProductNT, Cols: dst.Cols, Inner: a.Cols}, float64(dst.Rows))
	default:
		m.add(Key{Op: ProductTN, Cols: dst.Cols, Inner: a.Cols}, float64(a.Rows))
	}
	m.epilogue(ep, values(dst))
}

func (m *meter) edges(k Key, sparse string, g kernels.Graph, self bool, rows kernels.Span) {
	s := g.(*shape)
	n := s.in(rows)
	if self {
		n += float64(rows.Len())
	}
	if s.sparse {
		k.Op = sparse
	}
	m.add(k, n)
}

func (m *meter) Put(dst *kernels.Mat, _ []float32) { m.values(2 * values(dst)) }
func (m *meter) Get(_ []float32, src *kernels.Mat) { m.values(2 * values(src)) }
func (m *meter) Copy(dst, _ *kernels.Mat)          { m.values(2 * values(dst)) }
func (m *meter) Zero(dst *kernels.Mat)             { m.values(values(dst)) }
func (m *meter) Add(dst, _, _ *kernels.Mat)        { m.values(3 * values(dst)) }
func (m *meter) Dot(_, a, _ *kernels.Mat)          { m.values(2 * values(a)) }
func (m *meter) ColDot(_, a, _ *kernels.Mat)       { m.values(2 * values(a)) }
func (m *meter) ColMoments(_, x *kernels.Mat)      { m.values(2 * values(x)) }
func (m *meter) HeadDot(_, x, _ *kernels.Mat)      { m.values(values(x)) }
func (m *meter) HeadOuterAdd(dx, _, _ *kernels.Mat) {
	m.values(2 * values(dx))
}
func (m *meter) HeadDotGrad(_, _, x *kernels.Mat)             { m.values(values(x)) }
func (m *meter) ToBF16(_ []uint16, src *kernels.Mat)          { m.values(1.5 * values(src)) }
func (m *meter) FromBF16(dst *kernels.Mat, _ []uint16)        { m.values(1.5 * values(dst)) }
func (m *meter) Adam(p, _, _, _ *kernels.Mat, _ kernels.Adam) { m.values(7 * values(p)) }
func (m *meter) SGD(p, _, _ *kernels.Mat, _ kernels.SGD)      { m.values(5 * values(p)) }
func (m *meter) Wait() error                                  { return nil }
func (m *meter) Close() error                                 { return nil }

func (m *meter) GatherRows(dst, _ *kernels.Mat, _ []int32) {
	m.values((1 + scatteredCost) * values(dst))
}
func (m *meter) ScatterRows(_, src *kernels.Mat, _ []int32) {
	m.values((1 + scatteredCost) * values(src))
}
func (m *meter) AddRows(_, src *kernels.Mat, _ []int32) {
	m.values((1 + 2*scatteredCost) * values(src))
}
func (m *meter) AddScaled(dst, _, _ *kernels.Mat, _ float32, _ *kernels.Mat) {
	m.values(3 * values(dst))
}
func (m *meter) ColSum(_, x *kernels.Mat, rows kernels.Span) {
	m.values(float64(rows.Len()) * float64(x.Cols))
}
func (m *meter) ColAffine(dst, _, y, _, _, _ *kernels.Mat) { m.values(2*values(dst) + values(y)) }
func (m *meter) LayerNorm(dst, _, _, _, _ *kernels.Mat, _ float32) {
	m.values(4 * values(dst))
}
func (m *meter) LayerNormBack(dx, _, _, _, _, _, _ *kernels.Mat) { m.values(8 * values(dx)) }
func (m *meter) HeadMean(dst, x *kernels.Mat, _ int, ep *kernels.Epilogue) {
	m.values(values(x) + values(dst))
	m.epilogue(ep, values(dst))
}
func (m *meter) HeadSpread(dx, d *kernels.Mat, _ int) { m.values(values(dx) + values(d)) }

func (m *meter) GEMM(dst, a, _ *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	m.product(dst, a, t, ep)
}
func (m *meter) AddGEMM(dst, a, _ *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	m.product(dst, a, t, ep)
}

func (m *meter) SpMM(dst *kernels.Mat, g kernels.Graph, _ *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	m.edges(Key{Op: Gather, Cols: dst.Cols}, Sparse, g, ga.Self.On, rows)
	m.epilogue(ga.Ep, float64(rows.Len())*float64(dst.Cols))
}
func (m *meter) SpMMT(dst *kernels.Mat, g kernels.Graph, _, x *kernels.Mat, rows kernels.Span) {
	m.edges(Key{Op: Gather, Cols: x.Cols}, SparseBack, g, false, rows)
	m.values(values(dst))
}
func (m *meter) SDDMM(_ *kernels.Mat, g kernels.Graph, x, _ *kernels.Mat, rows kernels.Span) {
	m.edges(Key{Op: Gather, Cols: x.Cols}, Sparse, g, false, rows)
}
func (m *meter) EdgeDropout(_ *kernels.Mat, g kernels.Graph, _ kernels.Dropout, rows kernels.Span) {
	m.edges(Key{Op: EdgeDrop}, EdgeDrop, g, false, rows)
}
func (m *meter) SpMMMax(dst, _ *kernels.Mat, g kernels.Graph, _ *kernels.Mat, rows kernels.Span) {
	m.edges(Key{Op: MaxGather, Cols: dst.Cols}, MaxGather, g, false, rows)
}
func (m *meter) SpMMMaxBack(dx *kernels.Mat, g kernels.Graph, _, _ *kernels.Mat, rows kernels.Span) {
	m.edges(Key{Op: MaxBack, Cols: dx.Cols}, MaxBack, g, false, rows)
}
func (m *meter) GAT(dst, _ *kernels.Mat, g kernels.Graph, _, _, _ *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	m.edges(Key{Op: AttentionFwd, Cols: dst.Cols, Heads: p.Heads, Drop: p.Drop.P > 0}, AttentionFwd, g, p.Self.On, rows)
	m.epilogue(ep, float64(rows.Len())*float64(dst.Cols))
}
func (m *meter) GATBackDst(_, _ *kernels.Mat, g kernels.Graph, x, _, _, _, _ *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	m.edges(Key{Op: AttentionDst, Cols: x.Cols, Heads: p.Heads, Drop: p.Drop.P > 0}, AttentionDst, g, p.Self.On, rows)
}
func (m *meter) GATBackSrc(dx, _ *kernels.Mat, g kernels.Graph, _, _, _, _, _, _ *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	m.edges(Key{Op: AttentionSrc, Cols: dx.Cols, Heads: p.Heads, Drop: p.Drop.P > 0}, AttentionSrc, g, p.Self.On, rows)
}

func (m *meter) Forward(dst, _ *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	n := float64(rows.Len()) * float64(dst.Cols)
	if ep == nil {
		m.values(2 * n)
		return
	}
	m.add(Key{Op: Epilogue, Act: ep.Act, Drop: ep.Drop.P > 0}, n)
}
func (m *meter) Backward(dx, _, _ *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	n := float64(rows.Len()) * float64(dx.Cols)
	if ep == nil {
		m.values(2 * n)
		return
	}
	m.add(Key{Op: EpilogueBack, Act: ep.Act, Drop: ep.Drop.P > 0}, n)
}
func (m *meter) SoftmaxXent(_ *kernels.Mat, _ []float64, logits *kernels.Mat, _ []int32, _ *kernels.Mat, _ float32, rows kernels.Span) {
	m.add(Key{Op: Loss, Cols: logits.Cols}, float64(rows.Len())*float64(logits.Cols))
}
func (m *meter) SigmoidBCE(_ *kernels.Mat, _ []float64, logits *kernels.Mat, _ *kernels.CSR, _ []int32, _ *kernels.Mat, _ float32) {
	m.add(Key{Op: MultiLoss, Cols: logits.Cols}, values(logits))
}
