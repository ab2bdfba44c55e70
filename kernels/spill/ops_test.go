package spill

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// An opTest is an op on matrices of some shapes, which it gets in that order.
type opTest struct {
	name   string
	shapes [][2]int
	exact  bool // the same bits whether spilled or not
	run    func(e *env, s kernels.Stream, m []*kernels.Mat)
}

// env is what an op needs besides matrices.
type env struct {
	g, back kernels.Graph
	ids     []int32   // one per row: of the vertices
	self    []int32   // the source row of each row, or -1
	few     []int32   // rows, each once
	loss    []float64 // of a loss
	labels  []int32
	targets *kernels.CSR
	half    []uint16
}

const (
	sources = 700
	rows    = 500
	cols    = 41
	heads   = 4
	perHead = 12
	classes = 19
)

func (e *env) ep(bias *kernels.Mat, p float32) *kernels.Epilogue {
	return &kernels.Epilogue{Bias: bias, Act: kernels.LeakyReLU, Drop: kernels.Dropout{P: p, Key: 77, IDs: e.ids}}
}

func (e *env) attention(w *kernels.Mat) kernels.Attention {
	return kernels.Attention{
		Heads: heads, Slope: 0.2, Self: kernels.Self{On: true, Col: e.self, W: w},
		Drop: kernels.Dropout{P: 0.3, Key: 5}, DstIDs: e.ids,
	}
}

var some = kernels.Span{Lo: 37, Hi: 481}

var opTests = []opTest{
	{"PutGetCopyZero", [][2]int{{rows, cols}, {rows, cols}, {rows, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.Copy(m[0], m[1])
		s.Zero(m[2].Columns(3, 20).Sub(some))
	}},
	{"GEMM", [][2]int{{rows, cols}, {rows, 70}, {70, cols}, {1, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		ep := e.ep(m[3], 0.4)
		ep.Drop.IDs = nil
		s.GEMM(m[0], m[1], m[2], kernels.NN, ep)
	}},
	{"GEMM NT", [][2]int{{rows, 70}, {rows, cols}, {70, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.GEMM(m[0], m[1], m[2], kernels.NT, nil)
	}},
	{"GEMM TN", [][2]int{{70, cols}, {rows, 70}, {rows, cols}, {1, cols}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		ep := e.ep(m[3], 0.4)
		ep.Drop.IDs = nil
		s.GEMM(m[0], m[1], m[2], kernels.TN, ep)
	}},
	{"AddGEMM", [][2]int{{rows, cols}, {rows, 70}, {70, cols}, {70, cols}, {rows, cols}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.AddGEMM(m[0], m[1], m[2], kernels.NN, e.ep(nil, 0.2))
		s.AddGEMM(m[3], m[1], m[4], kernels.TN, nil)
	}},
	{"Forward", [][2]int{{rows, cols}, {rows, cols}, {1, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.Forward(m[0], m[1], e.ep(m[2], 0.4), some)
		s.Forward(m[1], m[1], nil, some)
	}},
	{"Backward", [][2]int{{rows, cols}, {rows, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.Backward(m[0], m[0], m[1], e.ep(nil, 0.4), some)
	}},
	{"Add", [][2]int{{rows, cols}, {rows, cols}, {rows, cols}, {1, 1}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.Add(m[0], m[0], m[1])
		s.AddScaled(m[2], m[1], m[0], 0.5, m[3])
	}},
	{"optimisers", [][2]int{{rows, cols}, {rows, cols}, {rows, cols}, {rows, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.Forward(m[3], m[3], &kernels.Epilogue{Act: kernels.ReLU}, kernels.Span{Hi: rows})
		s.Adam(m[0], m[1], m[2], m[3], kernels.Adam{LR: 0.01, Beta1: 0.9, Beta2: 0.99, Eps: 1e-6, Step: 3})
		s.SGD(m[0], m[1], m[2], kernels.SGD{LR: 0.1, Momentum: 0.9, Step: 2})
	}},
	{"sums", [][2]int{{1, cols}, {rows, cols}, {rows, cols}, {1, 1}, {1, cols}, {2, cols}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.ColSum(m[0], m[1], some)
		s.Dot(m[3], m[1], m[2])
		s.ColDot(m[4], m[1], m[2])
		s.ColMoments(m[5], m[1])
	}},
	{"ColAffine", [][2]int{{rows, cols}, {rows, cols}, {rows, cols}, {1, cols}, {1, cols}, {1, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.ColAffine(m[0], m[1], m[2], m[3], m[4], m[5])
		s.ColAffine(m[1], m[1], nil, m[3], nil, m[5])
	}},
	{"LayerNorm", [][2]int{{rows, cols}, {rows, 2}, {rows, cols}, {1, cols}, {1, cols}, {rows, cols}, {1, cols}, {1, cols}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.LayerNorm(m[0], m[1], m[2], m[3], m[4], 1e-5)
		s.LayerNormBack(m[5], m[6], m[7], m[5], m[2], m[1], m[3])
	}},
	{"SpMM", [][2]int{{rows, cols}, {sources, cols}, {rows, 1}, {sources, 1}, {rows, 1}, {1, cols}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.SpMM(m[0], e.g, m[1], kernels.Gather{Scale: kernels.Scale{Row: m[2], Col: m[3]}, Self: kernels.Self{On: true, Col: e.self, W: m[4]}, Ep: e.ep(m[5], 0.4)}, some)
	}},
	{"SpMM edges", [][2]int{{rows, cols}, {sources, cols}, {edges, 1}, {edges, 1}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.EdgeDropout(m[3], e.g, kernels.Dropout{P: 0.5, Key: 3, IDs: e.ids}, some)
		s.SpMM(m[0].Columns(0, 33), e.g, m[1].Columns(5, 38), kernels.Gather{W: m[2]}, some)
	}},
	{"SpMMT", [][2]int{{sources, cols}, {rows, cols}, {edges, 1}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.SpMMT(m[0], e.g, m[2], m[1], some)
	}},
	{"SDDMM", [][2]int{{edges, 1}, {sources, cols}, {rows, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.SDDMM(m[0], e.g, m[1], m[2], some)
	}},
	{"SpMMMax", [][2]int{{rows, cols}, {rows, cols}, {sources, cols}, {sources, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.SpMMMax(m[0], m[1], e.g, m[2], kernels.Span{Hi: rows})
		s.SpMMMaxBack(m[3], e.back, m[0], m[1], kernels.Span{Lo: 9, Hi: 650})
	}},
	{"GAT", [][2]int{{rows, heads * perHead}, {rows, heads}, {sources, heads * perHead}, {sources, heads}, {rows, heads}, {rows, 1}, {1, heads * perHead}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.GAT(m[0], m[1], e.g, m[2], m[3], m[4], e.attention(m[5]), e.ep(m[6], 0.4), some)
	}},
	{"GATBack", [][2]int{{rows, heads}, {rows, heads}, {sources, heads * perHead}, {sources, heads}, {rows, heads}, {rows, heads}, {rows, heads * perHead}, {sources, heads * perHead}, {sources, heads}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		p := e.attention(nil)
		s.GATBackDst(m[0], m[1], e.g, m[2], m[3], m[4], m[5], m[6], p, some)
		p.Self = kernels.Self{}
		s.GATBackSrc(m[7], m[8], e.back, m[2], m[3], m[4], m[5], m[1], m[6], p, kernels.Span{Lo: 9, Hi: 650})
	}},
	{"GAT packed", [][2]int{{rows, heads * perHead}, {sources, heads * perHead}, {rows, 4 * heads}, {sources, 2 * heads}, {rows, heads * perHead}, {sources, heads * perHead}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		// The narrow matrices are columns of one matrix.
		as, das := m[3].Columns(0, heads), m[3].Columns(heads, 2*heads)
		ad, lse, dad, dot := m[2].Columns(0, heads), m[2].Columns(heads, 2*heads), m[2].Columns(2*heads, 3*heads), m[2].Columns(3*heads, 4*heads)
		p := e.attention(nil)
		s.GAT(m[0], lse, e.g, m[1], as, ad, p, nil, some)
		s.GATBackDst(dad, dot, e.g, m[1], as, ad, lse, m[4], p, some)
		p.Self = kernels.Self{}
		s.GATBackSrc(m[5], das, e.back, m[1], as, ad, lse, dot, m[4], p, kernels.Span{Lo: 9, Hi: 650})
	}},
	{"heads", [][2]int{{rows, heads}, {rows, heads * perHead}, {heads, perHead}, {heads, perHead}, {rows, perHead}, {1, perHead}}, false, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.HeadDot(m[0], m[1], m[2])
		s.HeadOuterAdd(m[1], m[0], m[2])
		s.HeadDotGrad(m[3], m[0], m[1])
		ep := e.ep(m[5], 0.4)
		ep.Drop.IDs = nil
		s.HeadMean(m[4], m[1], heads, ep)
		s.HeadSpread(m[1], m[4], heads)
	}},
	{"rows by number", [][2]int{{150, cols}, {rows, cols}, {rows, cols}, {rows, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.GatherRows(m[0], m[1], e.few)
		s.ScatterRows(m[2], m[0], e.few)
		twice := slices.Clone(e.few)
		twice[7], twice[8], twice[20] = twice[9], -1, twice[9]
		s.AddRows(m[3], m[0], twice)
	}},
	{"SoftmaxXent", [][2]int{{rows, classes}, {rows, classes}, {1, classes}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.SoftmaxXent(m[0], e.loss, m[1], e.labels, m[2], 0.01, some)
	}},
	{"SigmoidBCE", [][2]int{{rows, classes}, {1, classes}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.SigmoidBCE(m[0], e.loss, m[0], e.targets, e.labels, m[1], 0.01)
	}},
	{"bf16", [][2]int{{rows, cols}, {rows, cols}}, true, func(e *env, s kernels.Stream, m []*kernels.Mat) {
		s.ToBF16(e.half, m[0])
		if err := s.Wait(); err != nil {
			return
		}
		s.FromBF16(m[1], e.half)
	}},
}

const edges = 4000

// makeEnv loads a graph of rows x sources on a device.
func makeEnv(t *testing.T, d kernels.Device, seed uint64) *env {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	e := &env{loss: []float64{0}, half: make([]uint16, rows*cols)}
	g := &kernels.CSR{Cols: sources, RowPtr: []int64{0}}
	each := map[int]int{}
	for range edges {
		each[int(float64(rows)*rng.Float64()*rng.Float64())]++
	}
	for r := range rows {
		var c []int32
		for range each[r] {
			c = append(c, rng.Int32N(sources))
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
	for range edges {
		g.Val = append(g.Val, rng.Float32())
	}
	back := &kernels.CSR{Cols: rows, RowPtr: make([]int64, sources+1)}
	lists := make([][][2]float32, sources)
	for r := range rows {
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
	for _, v := range rng.Perm(rows)[:150] {
		e.few = append(e.few, int32(v))
	}
	e.targets = &kernels.CSR{Cols: classes, RowPtr: []int64{0}}
	for r := range rows {
		for c := range classes {
			if rng.IntN(4) == 0 {
				e.targets.Col = append(e.targets.Col, int32(c))
			}
		}
		_ = r
		e.targets.RowPtr = append(e.targets.RowPtr, int64(len(e.targets.Col)))
	}
	var err error
	if e.g, err = d.Load(g); err != nil {
		t.Fatal(err)
	}
	if e.back, err = d.Load(back); err != nil {
		t.Fatal(err)
	}
	return e
}

// outcome runs an op and is what all matrices hold afterwards, with the loss and the
// rounded values.
func outcome(t *testing.T, d kernels.Device, o opTest) [][]float32 {
	t.Helper()
	e := makeEnv(t, d, 4)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	var ms []*kernels.Mat
	for _, sh := range o.shapes {
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
	d.Unload(e.g)
	d.Unload(e.back)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestEachOperand: every op with all of its operands spilled, and with each alone, in
// tiles of 8 columns and an arena that makes it run in many pieces.
func TestEachOperand(t *testing.T) {
	for _, o := range opTests {
		t.Run(o.name, func(t *testing.T) {
			host, err := ref.Open()
			if err != nil {
				t.Fatal(err)
			}
			want := outcome(t, host, o)
			for spilled := -1; spilled < len(o.shapes); spilled++ {
				n, seed := -1, uint64(spilled+1)
				d, err := openFake(MinArena+arenaFor(o.name), 8, seed, func(int, int) bool { n++; return spilled < 0 || n == spilled })
				if err != nil {
					t.Fatal(err)
				}
				got := outcome(t, d, o)
				for i := range want {
					if err := same(want[i], got[i], o.exact); err != nil {
						t.Errorf("operand %d of %v, spilled %d (-1: all), seed %d: %v", i, o.shapes, spilled, seed, err)
					}
				}
			}
		})
	}
}

// arenaFor is more room for what is not cut: edges, and what attention has for each row and head.
func arenaFor(op string) int64 {
	switch op {
	case "SDDMM":
		return 512 << 10
	case "GAT", "GATBack", "GAT packed":
		return 288 << 10
	}
	return 64 << 10
}

func same(want, got []float32, exact bool) error {
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		if math.Float32bits(want[i]) == math.Float32bits(got[i]) || !exact && math.Abs(w-g) <= 1e-5*(1+math.Abs(w)) {
			continue
		}
		return fmt.Errorf("value %d of %d is %v, want %v", i, len(want), g, w)
	}
	return nil
}
