package kerneltest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// A broken device is ref with one fault; the suite must find each of them.
type broken struct {
	kernels.Device
	wrap func(kernels.Stream) kernels.Stream
}

func (b *broken) NewStream() (kernels.Stream, error) {
	s, err := b.Device.NewStream()
	if err == nil && b.wrap != nil {
		s = b.wrap(s)
	}
	return s, err
}

// faulty is a stream whose SpMM, GEMM or other ops are replaced.
type faulty struct {
	kernels.Stream
	spmm     func(s kernels.Stream, dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span)
	gemm     func(s kernels.Stream, dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue)
	forward  func(s kernels.Stream, dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span)
	backward func(s kernels.Stream, dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span)
	xent     func(s kernels.Stream, grad *kernels.Mat, loss []float64, z *kernels.Mat, labels []int32, w *kernels.Mat, scale float32, rows kernels.Span)
	adam     func(s kernels.Stream, p, g, m, v *kernels.Mat, h kernels.Adam)
	toBF16   func(s kernels.Stream, dst []uint16, src *kernels.Mat)
	// op and nth name an output whose last value is off.
	op      string
	nth     int
	gat     func(s kernels.Stream, dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span)
	backDst func(s kernels.Stream, dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span)
	backSrc func(s kernels.Stream, dx, das *kernels.Mat, g kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span)
}

func (f *faulty) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	if f.spmm == nil {
		f.Stream.SpMM(dst, g, x, ga, rows)
		return
	}
	kernels.CheckSpMM(dst, g, x, ga, rows)
	f.spmm(f.Stream, dst, g, x, ga, rows)
}

func (f *faulty) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	if f.gemm == nil {
		f.Stream.GEMM(dst, a, b, t, ep)
		return
	}
	kernels.CheckGEMM(dst, a, b, t, ep)
	f.gemm(f.Stream, dst, a, b, t, ep)
}

func (f *faulty) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	if f.forward == nil {
		f.Stream.Forward(dst, x, ep, rows)
		return
	}
	kernels.CheckForward(dst, x, ep, rows)
	f.forward(f.Stream, dst, x, ep, rows)
}

func (f *faulty) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	if f.backward == nil {
		f.Stream.Backward(dx, dy, y, ep, rows)
		return
	}
	kernels.CheckBackward(dx, dy, y, ep, rows)
	f.backward(f.Stream, dx, dy, y, ep, rows)
}

func (f *faulty) SoftmaxXent(grad *kernels.Mat, loss []float64, z *kernels.Mat, labels []int32, w *kernels.Mat, scale float32, rows kernels.Span) {
	if f.xent == nil {
		f.Stream.SoftmaxXent(grad, loss, z, labels, w, scale, rows)
		return
	}
	kernels.CheckSoftmaxXent(grad, loss, z, labels, w, scale, rows)
	f.xent(f.Stream, grad, loss, z, labels, w, scale, rows)
}

func (f *faulty) Adam(p, g, m, v *kernels.Mat, h kernels.Adam) {
	if f.adam == nil {
		f.Stream.Adam(p, g, m, v, h)
		return
	}
	f.adam(f.Stream, p, g, m, v, h)
}

func (f *faulty) ToBF16(dst []uint16, src *kernels.Mat) {
	if f.toBF16 == nil {
		f.Stream.ToBF16(dst, src)
		return
	}
	f.toBF16(f.Stream, dst, src)
}

// leaky never reports what is held.
type leaky struct{ kernels.Device }

func (leaky) Close() error { return nil }

// trusting loads any graph: it hides a bad one behind an empty one.
type trusting struct{ kernels.Device }

func (d trusting) Load(g *kernels.CSR) (kernels.Graph, error) {
	if g.Validate() != nil {
		g = &kernels.CSR{RowPtr: []int64{0}}
	}
	return d.Device.Load(g)
}

// dirty returns matrices that are not zero.
type dirty struct{ kernels.Device }

func (d dirty) Alloc(rows, cols int) (*kernels.Mat, error) {
	m, err := d.Device.Alloc(rows, cols)
	if err == nil && rows > 2 && cols > 0 {
		m.Row(2)[0] = 1
	}
	return m, err
}

type (
	mat   = kernels.Mat
	graph = kernels.Graph
	span  = kernels.Span
)

// A fault is a bug with the case that must notice it.
type fault struct {
	name, finds string
	device      func(kernels.Device) kernels.Device
	stream      faulty
}

// faults are one-line bugs of the kinds that kernels have had.
var faults = []fault{
	{name: "drops the last column", finds: "SpMM/width=9", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		last := save(dst, dst.Cols-1)
		s.SpMM(dst, g, x, ga, rows)
		last()
	}}},
	{name: "ignores the row scale", finds: "SpMM/width=1", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		ga.Scale.Row = nil
		s.SpMM(dst, g, x, ga, rows)
	}}},
	{name: "ignores the column scale", finds: "SpMM/width=602", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		ga.Scale.Col = nil
		s.SpMM(dst, g, x, ga, rows)
	}}},
	{name: "ignores edge weights", finds: "SpMM/width=16", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		ga.W = nil
		s.SpMM(dst, g, x, ga, rows)
	}}},
	{name: "ignores the self map", finds: "SpMM/width=8", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		if ga.Self.Col != nil {
			ga.Self.On, ga.Self.Col = false, nil
		}
		s.SpMM(dst, g, x, ga, rows)
	}}},
	{name: "adds instead of setting", finds: "SpMM/width=41", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		var old []float32
		each(dst, rows, func(v *float32) { old = append(old, *v) })
		s.SpMM(dst, g, x, ga, rows)
		each(dst, rows, func(v *float32) { *v += old[0]; old = old[1:] })
	}}},
	{name: "computes a row too many", finds: "SpMM/width=7", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		if rows.Len() > 0 && rows.Hi < g.Rows() && (!ga.Self.On || ga.Self.Col != nil) {
			rows.Hi++
		}
		s.SpMM(dst, g, x, ga, rows)
	}}},
	{name: "leaves rows without edges alone", finds: "SpMM/empty", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		if g.Edges() > 0 {
			s.SpMM(dst, g, x, ga, rows)
		}
	}}},
	{name: "writes past the end of a row", finds: "SpMM/width=9", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		s.SpMM(dst, g, x, ga, rows)
		if dst.Stride > dst.Cols && dst.Rows > 1 {
			dst.Host[dst.Cols] = 0
		}
	}}},
	{name: "writes past the end of the matrix", finds: "SpMM/width=8", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		s.SpMM(dst, g, x, ga, rows)
		clear(beyond(dst))
	}}},
	{name: "scales its source in place", finds: "SpMM/width=41", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		s.SpMM(dst, g, x, ga, rows)
		if x.Rows > 3 && x.Cols > 0 {
			x.Row(3)[0] *= 1.5
		}
	}}},
	{name: "rounds by the place in the span", finds: "SpMM/spans/width=41", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		s.SpMM(dst, g, x, ga, rows)
		if rows.Lo%2 == 1 {
			each(dst, rows, func(v *float32) { *v = math.Nextafter32(*v, 9) })
		}
	}}},
	{name: "hides Inf behind a weight of 0", finds: "SpMM/special", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		s.SpMM(dst, g, x, ga, rows)
		each(dst, rows, func(v *float32) {
			if *v != *v {
				*v = 0
			}
		})
	}}},
	{name: "takes the dropout id from the span", finds: "SpMM/epilogue", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		if ga.Ep != nil && ga.Ep.Drop.IDs != nil {
			ep := *ga.Ep
			ep.Drop.IDs = nil
			ga.Ep = &ep
		}
		s.SpMM(dst, g, x, ga, rows)
	}}},
	{name: "forgets one edge of a hub", finds: "SpMM/width=16", stream: faulty{spmm: func(s kernels.Stream, dst *mat, g graph, x *mat, ga kernels.Gather, rows span) {
		s.SpMM(dst, g, x, ga, rows)
		if dst.Rows == 30 && rows.Len() > 20 && dst.Cols > 0 { // row 15 is the hub
			dst.Row(15)[0]++
		}
	}}},
	{name: "takes aᵀ for a", finds: "GEMM/aᵀ·b/width=8", stream: faulty{gemm: func(s kernels.Stream, dst, a, b *mat, t kernels.Trans, ep *kernels.Epilogue) {
		if t == kernels.TN && a.Rows == a.Cols {
			t = kernels.NN
		}
		s.GEMM(dst, a, b, t, ep)
		if t == kernels.TN && dst.Rows > 1 && dst.Cols > 1 {
			dst.Row(0)[1], dst.Row(1)[0] = dst.Row(1)[0], dst.Row(0)[1]
		}
	}}},
	{name: "skips the bias where the inner size is 0", finds: "GEMM/epilogue", stream: faulty{gemm: func(s kernels.Stream, dst, a, b *mat, t kernels.Trans, ep *kernels.Epilogue) {
		if a.Cols == 0 || a.Rows == 0 {
			ep = nil
		}
		s.GEMM(dst, a, b, t, ep)
	}}},
	{name: "sums in bfloat16", finds: "GEMM/a·b/width=602", stream: faulty{gemm: func(s kernels.Stream, dst, a, b *mat, t kernels.Trans, ep *kernels.Epilogue) {
		s.GEMM(dst, a, b, t, ep)
		each(dst, span{Hi: dst.Rows}, func(v *float32) { *v = math.Float32frombits(math.Float32bits(*v) &^ 0xffff) })
	}}},
	{name: "drops after scaling twice", finds: "Forward/width=16", stream: faulty{forward: func(s kernels.Stream, dst, x *mat, ep *kernels.Epilogue, rows span) {
		s.Forward(dst, x, ep, rows)
		if ep != nil && ep.Drop.P > 0 {
			each(dst, rows, func(v *float32) { *v *= ep.Drop.KeepScale() })
		}
	}}},
	{name: "uses another mask", finds: "Dropout/bits", stream: faulty{forward: func(s kernels.Stream, dst, x *mat, ep *kernels.Epilogue, rows span) {
		if ep != nil {
			other := *ep
			other.Drop.Key ^= 1
			ep = &other
		}
		s.Forward(dst, x, ep, rows)
	}}},
	{name: "ReLU makes NaN 0", finds: "Forward/special", stream: faulty{forward: func(s kernels.Stream, dst, x *mat, ep *kernels.Epilogue, rows span) {
		s.Forward(dst, x, ep, rows)
		if ep != nil && ep.Act == kernels.ReLU {
			each(dst, rows, func(v *float32) { *v = max(*v, 0); *v = finite(*v) })
		}
	}}},
	{name: "forgets the mask backward", finds: "Backward/width=9", stream: faulty{backward: func(s kernels.Stream, dx, dy, y *mat, ep *kernels.Epilogue, rows span) {
		if ep != nil {
			ep = &kernels.Epilogue{Act: ep.Act}
		}
		s.Backward(dx, dy, y, ep, rows)
	}}},
	{name: "leaves the gradient of unlabelled rows", finds: "SoftmaxXent/width=7", stream: faulty{xent: func(s kernels.Stream, grad *mat, loss []float64, z *mat, labels []int32, w *mat, scale float32, rows span) {
		s.SoftmaxXent(grad, loss, z, labels, w, scale, rows)
		for r := rows.Lo; grad != nil && r < rows.Hi; r++ {
			if labels[r] < 0 {
				grad.Row(r)[0] = poison
			}
		}
	}}},
	{name: "adds to the loss", finds: "SoftmaxXent/width=7", stream: faulty{xent: func(s kernels.Stream, grad *mat, loss []float64, z *mat, labels []int32, w *mat, scale float32, rows span) {
		before := loss[0]
		s.SoftmaxXent(grad, loss, z, labels, w, scale, rows)
		loss[0] += before
	}}},
	{name: "ignores class weights", finds: "SoftmaxXent/width=41", stream: faulty{xent: func(s kernels.Stream, grad *mat, loss []float64, z *mat, labels []int32, w *mat, scale float32, rows span) {
		s.SoftmaxXent(grad, loss, z, labels, nil, scale, rows)
	}}},
	{name: "forgets the bias correction", finds: "Adam/width=8", stream: faulty{adam: func(s kernels.Stream, p, g, m, v *mat, h kernels.Adam) {
		h.Step += 1000
		s.Adam(p, g, m, v, h)
	}}},
	{name: "decays the weights in plain Adam", finds: "Adam/width=8", stream: faulty{adam: func(s kernels.Stream, p, g, m, v *mat, h kernels.Adam) {
		h.Decoupled = true
		s.Adam(p, g, m, v, h)
	}}},
	{name: "cuts instead of rounding", finds: "BF16/rounding", stream: faulty{toBF16: func(s kernels.Stream, dst []uint16, src *mat) {
		for i := range dst {
			dst[i] = uint16(math.Float32bits(src.Row(i / src.Cols)[i%src.Cols]) >> 16)
		}
	}}},
	{name: "reports no leak", finds: "Device/leaks", device: func(d kernels.Device) kernels.Device { return leaky{d} }},
	{name: "trusts a graph", finds: "Device/load", device: func(d kernels.Device) kernels.Device { return trusting{d} }},
	{name: "hands out used memory", finds: "Device/alloc", device: func(d kernels.Device) kernels.Device { return dirty{d} }},
}

// TestFaultsAreFound proves that the suite can fail, and that it is the case
// meant to that does.
func TestFaultsAreFound(t *testing.T) {
	byName := make(map[string]Case)
	for _, c := range Cases() {
		byName[c.Name] = c
	}
	for _, f := range slices.Concat(faults, opFaults) {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			c, ok := byName[f.finds]
			if !ok {
				t.Fatalf("no case %q in the suite", f.finds)
			}
			err := c.Check(func() (kernels.Device, error) {
				d, err := ref.Open()
				if f.device != nil {
					d = f.device(d)
				}
				b := &broken{Device: d}
				if f.device == nil {
					b.wrap = func(s kernels.Stream) kernels.Stream {
						w := f.stream
						w.Stream = s
						return &w
					}
				}
				return b, err
			})
			if err == nil {
				t.Errorf("case %s passes on a device that %s", f.finds, f.name)
			}
			t.Log(err)
		})
	}
}

// TestFailureText: a report names device, op, shape, element, numbers and seed.
func TestFailureText(t *testing.T) {
	l := &lab{dev: &broken{Device: must(t)}, seed: 42}
	tr := l.trial(layouts[1], "SpMM of 2 x 3")
	a := &array{name: "dst", view: &mat{Rows: 1, Cols: 2, Stride: 2}, img: make([]float32, 1+2+guards), out: true}
	a.got = append([]float32(nil), a.img...)
	a.got[1], a.got[2] = 1, 3
	tr.check(a, span{Hi: 1}, func(_, c int) value { return value{v: 1, tol: 0.5} })
	want := "ref: SpMM of 2 x 3, tight: dst[0,1] is 3, want 1 ± 0.5 (4 tolerances off, the worst of 1 wrong in 1 x 2), seed 42"
	if got := errors.Join(l.failures...); got == nil || got.Error() != want {
		t.Errorf("the report is\n%v\nwant\n%s", got, want)
	}
}

func must(t *testing.T) kernels.Device {
	t.Helper()
	d, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// save copies column c and returns what puts it back.
func save(m *mat, c int) func() {
	var old []float32
	for r := range m.Rows {
		old = append(old, m.Row(r)[c])
	}
	return func() {
		for r := range m.Rows {
			m.Row(r)[c] = old[r]
		}
	}
}

func each(m *mat, rows span, f func(*float32)) {
	for r := rows.Lo; r < rows.Hi; r++ {
		row := m.Row(r)
		for c := range row {
			f(&row[c])
		}
	}
}

func finite(v float32) float32 {
	if v != v {
		return 0
	}
	return v
}

// beyond is the value after the last one of m, which only unsafe code can reach.
func beyond(m *mat) []float32 {
	n := extentOf(m)
	if n == 0 {
		return nil
	}
	return unsafe.Slice(unsafe.SliceData(m.Host), n+1)[n:]
}
