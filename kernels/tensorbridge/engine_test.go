package tensorbridge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"dorylus/kernels"
)

func newEngine(t *testing.T) *Engine {
	t.Helper()
	dev, _ := openRef(t)
	e, err := NewEngine(dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// forms are the ways to hold a rows x cols matrix of the given values.
var forms = []struct {
	name string
	make func(t *testing.T, rows, cols int, x []float32, opts ...tensor.ConsOpt) *tensor.Dense
}{
	{"rows", func(t *testing.T, rows, cols int, x []float32, opts ...tensor.ConsOpt) *tensor.Dense {
		return tensor.New(append(opts, tensor.WithShape(rows, cols), tensor.WithBacking(append([]float32(nil), x...)))...)
	}},
	{"transposed", func(t *testing.T, rows, cols int, x []float32, opts ...tensor.ConsOpt) *tensor.Dense {
		turned := make([]float32, len(x))
		for r := range rows {
			for c := range cols {
				turned[c*rows+r] = x[r*cols+c]
			}
		}
		return transposed(t, tensor.New(append(opts, tensor.WithShape(cols, rows), tensor.WithBacking(turned))...))
	}},
	{"columns of a wider one", func(t *testing.T, rows, cols int, x []float32, opts ...tensor.ConsOpt) *tensor.Dense {
		wide := make([]float32, rows*(cols+3))
		for r := range rows {
			copy(wide[r*(cols+3)+1:], x[r*cols:(r+1)*cols])
		}
		return sliced(t, tensor.New(append(opts, tensor.WithShape(rows, cols+3), tensor.WithBacking(wide))...), nil, tensor.S(1, cols+1))
	}},
	{"column-major", func(t *testing.T, rows, cols int, x []float32, opts ...tensor.ConsOpt) *tensor.Dense {
		return tensor.New(append(opts, tensor.WithShape(rows, cols), tensor.AsFortran(append([]float32(nil), x...)))...)
	}},
}

// TestMatMul: products of every form of operands equal tensor's own product of
// plain matrices. Tolerance: both sum k products, in any order.
func TestMatMul(t *testing.T) {
	e := newEngine(t)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, size := range [][3]int{{4, 5, 6}, {1, 7, 3}, {7, 1, 3}, {3, 7, 1}, {33, 70, 41}} {
		m, k, n := size[0], size[1], size[2]
		x, y := make([]float32, m*k), make([]float32, k*n)
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		for i := range y {
			y[i] = rng.Float32() - 0.5
		}
		plain, err := tensor.MatMul(forms[0].make(t, m, k, x), forms[0].make(t, k, n, y))
		if err != nil {
			t.Fatal(err)
		}
		want := values(t, plain.(*tensor.Dense))
		for _, fa := range forms {
			for _, fb := range forms {
				t.Run(strings.ReplaceAll(fmt.Sprintf("%dx%dx%d %s times %s", m, k, n, fa.name, fb.name), " ", "-"), func(t *testing.T) {
					a, b := fa.make(t, m, k, x, tensor.WithEngine(e)), fb.make(t, k, n, y, tensor.WithEngine(e))
					if !a.Shape().IsMatrix() || !b.Shape().IsMatrix() {
						return // tensor makes one column of a wider matrix a vector, and no product of it
					}
					c, err := tensor.MatMul(a, b)
					if err != nil {
						t.Fatal(err)
					}
					got := values(t, c.(*tensor.Dense))
					for i := range want {
						if tol := 2 * float64(k) * 0x1p-24 * float64(k) / 4; !(math.Abs(float64(got[i]-want[i])) <= tol) {
							t.Fatalf("value %d is %v, want %v ± %v", i, got[i], want[i], tol)
						}
					}
				})
			}
		}
	}
}

// counting is an engine's stream that counts products.
type counting struct {
	kernels.Stream
	n *int
}

func (c counting) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	*c.n++
	c.Stream.GEMM(dst, a, b, t, ep)
}

// TestMatMulRunsOnTheDevice: float32 products go to the stream, float64 ones to
// tensor's engine; other operations work on the same tensors.
func TestMatMulRunsOnTheDevice(t *testing.T) {
	e := newEngine(t)
	n := 0
	e.mu.stream = counting{e.mu.stream, &n}
	a := forms[0].make(t, 2, 2, []float32{1, 2, 3, 4}, tensor.WithEngine(e))
	c, err := a.MatMul(a)
	if err != nil {
		t.Fatal(err)
	}
	if n != 1 || c.Float32s()[3] != 22 {
		t.Errorf("the product ran %d times on the device and is %v, want once and 22 at the end", n, c.Float32s())
	}
	into := forms[0].make(t, 2, 2, make([]float32, 4), tensor.WithEngine(e))
	if _, err := a.MatMul(a, tensor.WithReuse(into)); err != nil || n != 2 || into.Float32s()[0] != 7 {
		t.Errorf("into given memory: %v, %d products, %v; want 7 first", err, n, into.Float32s())
	}
	f := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 2, 3, 4}), tensor.WithEngine(e))
	d, err := f.MatMul(f)
	if err != nil || n != 2 || d.Float64s()[3] != 22 {
		t.Errorf("float64: %v, %d products on the device, %v; want 2 and 22 at the end", err, n, d)
	}
	sum, err := tensor.Add(a, a)
	if err != nil || sum.(*tensor.Dense).Float32s()[3] != 8 {
		t.Errorf("sum: %v, %v; want 8 at the end", err, sum)
	}
}

// TestMatMulMisfit: an engine called with shapes that tensor would refuse gives an
// error, no panic.
func TestMatMulMisfit(t *testing.T) {
	e := newEngine(t)
	if err := e.MatMul(dense(t, 2, 3), dense(t, 4, 2), dense(t, 2, 2)); err == nil || !strings.Contains(err.Error(), "2 x 3 times 4 x 2 is not 2 x 2") {
		t.Errorf("%v, want an error that names the shapes", err)
	}
}
