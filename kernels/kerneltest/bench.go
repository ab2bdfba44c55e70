package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
)

// Benchmark times the ops that an epoch is made of, on one stream. SpMM and the
// row ops report the bytes of the rows that they move (SpMM: the gathered rows,
// without indices), so that B/s can be held against the machine's bandwidth; GEMM
// reports GFLOP/s.
func Benchmark(b *testing.B, open func() (kernels.Device, error)) {
	for _, width := range []int{16, 41, 64, 128, 602} {
		b.Run(fmt.Sprintf("SpMM/width=%d", width), func(b *testing.B) { benchSpMM(b, open, width) })
	}
	for _, size := range [][3]int{{4096, 602, 128}, {4096, 128, 41}, {2708, 1433, 16}} {
		for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
			b.Run(fmt.Sprintf("GEMM/%s/%dx%dx%d", transposition[tr], size[0], size[1], size[2]), func(b *testing.B) {
				benchGEMM(b, open, tr, size[0], size[1], size[2])
			})
		}
	}
	b.Run("Forward/width=128", func(b *testing.B) { benchForward(b, open) })
	b.Run("SoftmaxXent/width=41", func(b *testing.B) { benchXent(b, open) })
}

// bench is a device and a stream for one benchmark.
type bench struct {
	*testing.B
	dev kernels.Device
	s   kernels.Stream
	rng *rand.Rand
}

func newBench(b *testing.B, open func() (kernels.Device, error)) *bench {
	dev, err := open()
	if err != nil {
		b.Skipf("SKIPPED: %v", err)
	}
	s, err := dev.NewStream()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
		if err := dev.Close(); err != nil {
			b.Error(err)
		}
	})
	return &bench{B: b, dev: dev, s: s, rng: rand.New(rand.NewPCG(1, 2))}
}

// mat is a matrix of random values, freed at the end.
func (b *bench) mat(rows, cols int) *kernels.Mat {
	m, err := b.dev.Alloc(rows, cols)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { b.dev.Free(m) })
	data := make([]float32, rows*cols)
	for i := range data {
		data[i] = b.rng.Float32() - 0.5
	}
	b.s.Put(m, data)
	return m
}

// time runs op b.N times and waits for it.
func (b *bench) time(op func()) {
	op()
	if err := b.s.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		op()
	}
	if err := b.s.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
}

func benchSpMM(b0 *testing.B, open func() (kernels.Device, error), width int) {
	const rows, degree = 20000, 20
	b := newBench(b0, open)
	csr := &kernels.CSR{Cols: rows, RowPtr: make([]int64, rows+1)}
	for v := range rows {
		// ascending columns, spread over all sources
		for k := range degree {
			csr.Col = append(csr.Col, int32(k*(rows/degree)+b.rng.IntN(rows/degree)))
		}
		csr.RowPtr[v+1] = int64(len(csr.Col))
	}
	g, err := b.dev.Load(csr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { b.dev.Unload(g) })
	x, dst, rs := b.mat(rows, width), b.mat(rows, width), b.mat(rows, 1)
	ga := kernels.Gather{Scale: kernels.Scale{Row: rs}}
	b.SetBytes(int64(len(csr.Col)) * int64(width) * 4)
	b.time(func() { b.s.SpMM(dst, g, x, ga, kernels.Span{Hi: rows}) })
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(csr.Col)), "ns/edge")
}

// benchGEMM times one block: m rows of k values to n, forward (NN), the gradient
// of the input (NT) and that of the weights (TN).
func benchGEMM(b0 *testing.B, open func() (kernels.Device, error), tr kernels.Trans, m, k, n int) {
	b := newBench(b0, open)
	x, w, y := b.mat(m, k), b.mat(k, n), b.mat(m, n)
	b.time(func() {
		switch tr {
		case kernels.NN:
			b.s.GEMM(y, x, w, tr, nil)
		case kernels.NT:
			b.s.GEMM(x, y, w, tr, nil)
		case kernels.TN:
			b.s.GEMM(w, x, y, tr, nil)
		}
	})
	flops := 2 * float64(m) * float64(k) * float64(n) * float64(b.N)
	b.ReportMetric(flops/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

func benchForward(b0 *testing.B, open func() (kernels.Device, error)) {
	const rows, width = 4096, 128
	b := newBench(b0, open)
	x, dst, bias := b.mat(rows, width), b.mat(rows, width), b.mat(1, width)
	ep := &kernels.Epilogue{Bias: bias, Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, Key: 1}}
	b.SetBytes(2 * 4 * rows * width)
	b.time(func() { b.s.Forward(dst, x, ep, kernels.Span{Hi: rows}) })
}

func benchXent(b0 *testing.B, open func() (kernels.Device, error)) {
	const rows, classes = 4096, 41
	b := newBench(b0, open)
	z, grad := b.mat(rows, classes), b.mat(rows, classes)
	labels, loss := make([]int32, rows), make([]float64, 1)
	for r := range labels {
		labels[r] = int32(r % classes)
	}
	b.SetBytes(2 * 4 * rows * classes)
	b.time(func() { b.s.SoftmaxXent(grad, loss, z, labels, nil, 1.0/rows, kernels.Span{Hi: rows}) })
}
