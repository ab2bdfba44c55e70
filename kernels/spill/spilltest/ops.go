// Package spilltest has ops on matrices of many tiles, to compare a device that holds
// them with one that streams them.
package spilltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/kernels"
)

// An Op is an op on matrices of some shapes, which it gets in that order.
type Op struct {
	Name   string
	Shapes [][2]int
	Exact  bool // on ref: the same bits whether spilled or not
	run    func(e *Env, s kernels.Stream, m []*kernels.Mat)
}

// Env is what an op needs besides matrices.
type Env struct {
	G, back kernels.Graph
	ids     []int32   // one per row: of the vertices
	self    []int32   // the source row of each row, or -1
	Few     []int32   // Rows, each once
	loss    []float64 // of a loss
	labels  []int32
	targets *kernels.CSR
	half    []uint16
}

const (
	Sources = 700
	Rows    = 500
	cols    = 41
	heads   = 4
	perHead = 12
	classes = 19
)

func (e *Env) ep(bias *kernels.Mat, p float32) *kernels.Epilogue {
	return &kernels.Epilogue{Bias: bias, Act: kernels.LeakyReLU, Drop: kernels.Dropout{P: p, Key: 77, IDs: e.ids}}
}

func (e *Env) attention(w *kernels.Mat) kernels.Attention {
	return kernels.Attention{
		Heads: heads, Slope: 0.2, Self: kernels.Self{On: true, Col: e.self, W: w},
		Drop: kernels.Dropout{P: 0.3, Key: 5}, DstIDs: e.ids,
	}
}

// Some are the rows that ops with a span run on.
var Some = kernels.Span{Lo: 37, Hi: 481}

// Ops are all that may be streamed.
var Ops = []Op{
	{"PutGetCopyZero", [][2]int{{Rows, cols}, {Rows, cols}, {Rows, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.Copy(m[0], m[1])
		s.Zero(m[2].Columns(3, 20).Sub(Some))
	}},
	{"GEMM", [][2]int{{Rows, cols}, {Rows, 70}, {70, cols}, {1, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		ep := e.ep(m[3], 0.4)
		ep.Drop.IDs = nil
		s.GEMM(m[0], m[1], m[2], kernels.NN, ep)
	}},
	{"GEMM NT", [][2]int{{Rows, 70}, {Rows, cols}, {70, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.GEMM(m[0], m[1], m[2], kernels.NT, nil)
	}},
	{"GEMM TN", [][2]int{{70, cols}, {Rows, 70}, {Rows, cols}, {1, cols}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		ep := e.ep(m[3], 0.4)
		ep.Drop.IDs = nil
		s.GEMM(m[0], m[1], m[2], kernels.TN, ep)
	}},
	{"AddGEMM", [][2]int{{Rows, cols}, {Rows, 70}, {70, cols}, {70, cols}, {Rows, cols}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.AddGEMM(m[0], m[1], m[2], kernels.NN, e.ep(nil, 0.2))
		s.AddGEMM(m[3], m[1], m[4], kernels.TN, nil)
	}},
	{"Forward", [][2]int{{Rows, cols}, {Rows, cols}, {1, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.Forward(m[0], m[1], e.ep(m[2], 0.4), Some)
		s.Forward(m[1], m[1], nil, Some)
	}},
	{"Backward", [][2]int{{Rows, cols}, {Rows, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.Backward(m[0], m[0], m[1], e.ep(nil, 0.4), Some)
	}},
	{"Add", [][2]int{{Rows, cols}, {Rows, cols}, {Rows, cols}, {1, 1}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.Add(m[0], m[0], m[1])
		s.AddScaled(m[2], m[1], m[0], 0.5, m[3])
	}},
	{"optimisers", [][2]int{{Rows, cols}, {Rows, cols}, {Rows, cols}, {Rows, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.Forward(m[3], m[3], &kernels.Epilogue{Act: kernels.ReLU}, kernels.Span{Hi: Rows})
		s.Adam(m[0], m[1], m[2], m[3], kernels.Adam{LR: 0.01, Beta1: 0.9, Beta2: 0.99, Eps: 1e-6, Step: 3})
		s.SGD(m[0], m[1], m[2], kernels.SGD{LR: 0.1, Momentum: 0.9, Step: 2})
	}},
	{"sums", [][2]int{{1, cols}, {Rows, cols}, {Rows, cols}, {1, 1}, {1, cols}, {2, cols}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.ColSum(m[0], m[1], Some)
		s.Dot(m[3], m[1], m[2])
		s.ColDot(m[4], m[1], m[2])
		s.ColMoments(m[5], m[1])
	}},
	{"ColAffine", [][2]int{{Rows, cols}, {Rows, cols}, {Rows, cols}, {1, cols}, {1, cols}, {1, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.ColAffine(m[0], m[1], m[2], m[3], m[4], m[5])
		s.ColAffine(m[1], m[1], nil, m[3], nil, m[5])
	}},
	{"LayerNorm", [][2]int{{Rows, cols}, {Rows, 2}, {Rows, cols}, {1, cols}, {1, cols}, {Rows, cols}, {1, cols}, {1, cols}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.LayerNorm(m[0], m[1], m[2], m[3], m[4], 1e-5)
		s.LayerNormBack(m[5], m[6], m[7], m[5], m[2], m[1], m[3])
	}},
	{"SpMM", [][2]int{{Rows, cols}, {Sources, cols}, {Rows, 1}, {Sources, 1}, {Rows, 1}, {1, cols}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.SpMM(m[0], e.G, m[1], kernels.Gather{Scale: kernels.Scale{Row: m[2], Col: m[3]}, Self: kernels.Self{On: true, Col: e.self, W: m[4]}, Ep: e.ep(m[5], 0.4)}, Some)
	}},
	{"SpMM edges", [][2]int{{Rows, cols}, {Sources, cols}, {Edges, 1}, {Edges, 1}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.EdgeDropout(m[3], e.G, kernels.Dropout{P: 0.5, Key: 3, IDs: e.ids}, Some)
		s.SpMM(m[0].Columns(0, 33), e.G, m[1].Columns(5, 38), kernels.Gather{W: m[2]}, Some)
	}},
	{"SpMMT", [][2]int{{Sources, cols}, {Rows, cols}, {Edges, 1}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.SpMMT(m[0], e.G, m[2], m[1], Some)
	}},
	{"SDDMM", [][2]int{{Edges, 1}, {Sources, cols}, {Rows, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.SDDMM(m[0], e.G, m[1], m[2], Some)
	}},
	{"SpMMMax", [][2]int{{Rows, cols}, {Rows, cols}, {Sources, cols}, {Sources, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.SpMMMax(m[0], m[1], e.G, m[2], kernels.Span{Hi: Rows})
		s.SpMMMaxBack(m[3], e.back, m[0], m[1], kernels.Span{Lo: 9, Hi: 650})
	}},
	{"GAT", [][2]int{{Rows, heads * perHead}, {Rows, heads}, {Sources, heads * perHead}, {Sources, heads}, {Rows, heads}, {Rows, 1}, {1, heads * perHead}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.GAT(m[0], m[1], e.G, m[2], m[3], m[4], e.attention(m[5]), e.ep(m[6], 0.4), Some)
	}},
	{"GATBack", [][2]int{{Rows, heads}, {Rows, heads}, {Sources, heads * perHead}, {Sources, heads}, {Rows, heads}, {Rows, heads}, {Rows, heads * perHead}, {Sources, heads * perHead}, {Sources, heads}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		p := e.attention(nil)
		s.GATBackDst(m[0], m[1], e.G, m[2], m[3], m[4], m[5], m[6], p, Some)
		p.Self = kernels.Self{}
		s.GATBackSrc(m[7], m[8], e.back, m[2], m[3], m[4], m[5], m[1], m[6], p, kernels.Span{Lo: 9, Hi: 650})
	}},
	{"GAT packed", [][2]int{{Rows, heads * perHead}, {Sources, heads * perHead}, {Rows, 4 * heads}, {Sources, 2 * heads}, {Rows, heads * perHead}, {Sources, heads * perHead}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		// The narrow matrices are columns of one matrix.
		as, das := m[3].Columns(0, heads), m[3].Columns(heads, 2*heads)
		ad, lse, dad, dot := m[2].Columns(0, heads), m[2].Columns(heads, 2*heads), m[2].Columns(2*heads, 3*heads), m[2].Columns(3*heads, 4*heads)
		p := e.attention(nil)
		s.GAT(m[0], lse, e.G, m[1], as, ad, p, nil, Some)
		s.GATBackDst(dad, dot, e.G, m[1], as, ad, lse, m[4], p, Some)
		p.Self = kernels.Self{}
		s.GATBackSrc(m[5], das, e.back, m[1], as, ad, lse, dot, m[4], p, kernels.Span{Lo: 9, Hi: 650})
	}},
	{"GAT beside", [][2]int{{Rows, heads * (perHead + 1)}, {Sources, heads * (perHead + 1)}, {Rows, heads * (perHead + 3)}, {Sources, heads * (perHead + 1)}, {Rows, heads}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		// The narrow matrices are columns behind the wide ones.
		body := func(m *kernels.Mat) *kernels.Mat { return m.Columns(0, heads*perHead) }
		part := func(m *kernels.Mat, i int) *kernels.Mat {
			return m.Columns(heads*(perHead+i), heads*(perHead+i+1))
		}
		p := e.attention(nil)
		s.GAT(body(m[0]), part(m[0], 0), e.G, body(m[1]), part(m[1], 0), part(m[2], 0), p, e.ep(nil, 0.4), Some)
		s.GATBackDst(m[4], part(m[2], 2), e.G, body(m[1]), part(m[1], 0), part(m[2], 0), part(m[2], 1), body(m[2]), p, Some)
		p.Self = kernels.Self{}
		s.GATBackSrc(body(m[3]), part(m[3], 0), e.back, body(m[1]), part(m[1], 0), part(m[2], 0), part(m[2], 1), part(m[2], 2), body(m[2]), p, kernels.Span{Lo: 9, Hi: 650})
		s.HeadDot(part(m[3], 0), body(m[3]), m[0].Sub(kernels.Span{Hi: heads}).Columns(0, perHead))
	}},
	{"heads", [][2]int{{Rows, heads}, {Rows, heads * perHead}, {heads, perHead}, {heads, perHead}, {Rows, perHead}, {1, perHead}}, false, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.HeadDot(m[0], m[1], m[2])
		s.HeadOuterAdd(m[1], m[0], m[2])
		s.HeadDotGrad(m[3], m[0], m[1])
		ep := e.ep(m[5], 0.4)
		ep.Drop.IDs = nil
		s.HeadMean(m[4], m[1], heads, ep)
		s.HeadSpread(m[1], m[4], heads)
	}},
	{"rows by number", [][2]int{{150, cols}, {Rows, cols}, {Rows, cols}, {Rows, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.GatherRows(m[0], m[1], e.Few)
		s.ScatterRows(m[2], m[0], e.Few)
		twice := slices.Clone(e.Few)
		twice[7], twice[8], twice[20] = twice[9], -1, twice[9]
		s.AddRows(m[3], m[0], twice)
	}},
	{"SoftmaxXent", [][2]int{{Rows, classes}, {Rows, classes}, {1, classes}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.SoftmaxXent(m[0], e.loss, m[1], e.labels, m[2], 0.01, Some)
	}},
	{"SigmoidBCE", [][2]int{{Rows, classes}, {1, classes}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.SigmoidBCE(m[0], e.loss, m[0], e.targets, e.labels, m[1], 0.01)
	}},
	{"bf16", [][2]int{{Rows, cols}, {Rows, cols}}, true, func(e *Env, s kernels.Stream, m []*kernels.Mat) {
		s.ToBF16(e.half, m[0])
		if err := s.Wait(); err != nil {
			return
		}
		s.FromBF16(m[1], e.half)
	}},
}

// Edges of the graph.
const Edges = 4000

// NewEnv loads a graph of rows x sources on a device.
func NewEnv(t testing.TB, d kernels.Device, seed uint64) *Env {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	e := &Env{loss: []float64{0}, half: make([]uint16, Rows*cols)}
	g := &kernels.CSR{Cols: Sources, RowPtr: []int64{0}}
	each := map[int]int{}
	for range Edges {
		each[int(float64(Rows)*rng.Float64()*rng.Float64())]++
	}
	for r := range Rows {
		var c []int32
		for range each[r] {
			c = append(c, rng.Int32N(Sources))
		}
		slices.Sort(c)
		g.Col = append(g.Col, c...)
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		e.ids = append(e.ids, rng.Int32N(1<<20))
		e.self = append(e.self, int32(r)-int32(r%7/6)*int32(r)-int32(r%7/6))
		e.labels = append(e.labels, rng.Int32N(classes+3)-3)
	}
	for i := range e.self {
		e.labels[i] = max(e.labels[i], -1)
	}
	for range Edges {
		g.Val = append(g.Val, rng.Float32())
	}
	back := &kernels.CSR{Cols: Rows, RowPtr: make([]int64, Sources+1)}
	lists := make([][][2]float32, Sources)
	for r := range Rows {
		for k := g.RowPtr[r]; k < g.RowPtr[r+1]; k++ {
			lists[g.Col[k]] = append(lists[g.Col[k]], [2]float32{float32(r), g.Val[k]})
		}
	}
	for u, l := range lists {
		for _, x := range l {
			back.Col, back.Val = append(back.Col, int32(x[0])), append(back.Val, x[1])
		}
		back.RowPtr[u+1] = int64(len(back.Col))
	}
	for _, v := range rng.Perm(Rows)[:150] {
		e.Few = append(e.Few, int32(v))
	}
	e.targets = &kernels.CSR{Cols: classes, RowPtr: []int64{0}}
	for r := range Rows {
		for c := range classes {
			if rng.IntN(4) == 0 {
				e.targets.Col = append(e.targets.Col, int32(c))
			}
		}
		_ = r
		e.targets.RowPtr = append(e.targets.RowPtr, int64(len(e.targets.Col)))
	}
	var err error
	if e.G, err = d.Load(g); err != nil {
		t.Fatal(err)
	}
	if e.back, err = d.Load(back); err != nil {
		t.Fatal(err)
	}
	return e
}

// Outcome runs an op and is what all matrices hold afterwards, with the loss and the
// rounded values.
func Outcome(t testing.TB, d kernels.Device, o Op) [][]float32 {
	t.Helper()
	e := NewEnv(t, d, 4)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	var ms []*kernels.Mat
	for _, sh := range o.Shapes {
		m, err := d.Alloc(sh[0], sh[1])
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float32, sh[0]*sh[1])
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		s.Put(m, v)
		ms = append(ms, m)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	o.run(e, s, ms)
	var got [][]float32
	for _, m := range ms {
		// Padding has to stay zero: all of the stride is read.
		padded := *m
		padded.Cols = m.Stride
		v := make([]float32, m.Rows*m.Stride)
		s.Get(v, &padded)
		got = append(got, v)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	got = append(got, []float32{float32(e.loss[0])})
	var half []float32
	for _, h := range e.half {
		half = append(half, float32(h))
	}
	got = append(got, half)
	for _, m := range ms {
		d.Free(m)
	}
	d.Unload(e.G)
	d.Unload(e.back)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return got
}

// Arena is an arena in which the op runs in many pieces: larger for what is not cut,
// Edges, and what attention has for each row and head.
func (o Op) Arena() int64 {
	switch o.Name {
	case "SDDMM":
		return 576 << 10
	case "GAT", "GATBack", "GAT packed", "GAT beside":
		return 352 << 10
	}
	return 128 << 10
}

// Same says where values differ: bit by bit, or by more than 1e-4 of the larger of 1 and the value.
func Same(want, got []float32, exact bool) error {
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		if math.Float32bits(want[i]) == math.Float32bits(got[i]) || !exact && math.Abs(w-g) <= 1e-4*math.Max(1, math.Abs(w)) {
			continue
		}
		return fmt.Errorf("value %d of %d is %v, want %v", i, len(want), g, w)
	}
	return nil
}
