package kerneltest

import (
	"slices"
	"sync"

	"dorylus/kernels"
)

func streamCases() []Case {
	return []Case{{"Stream/order", order}, {"Stream/concurrent", concurrent}, {"Stream/repeat", repeat}}
}

// order: ops queued without a Wait between them see each other's results.
func order(l *lab) {
	const n, f = 40, 17
	csr := toy(l.rng, n, n, true)
	g := l.load(csr)
	a, b, c, w := l.alloc(n, f), l.alloc(n, f), l.alloc(n, f), l.alloc(f, f)
	x := make([]float32, n*f)
	for i := range x {
		x[i] = float32(l.rng.IntN(5) - 2)
	}
	eye := make([]float32, f*f)
	for i := range f {
		eye[i*f+(i+1)%f] = 1 // shifts every row by one column
	}
	got := make([]float32, n*f)
	l.s.Put(a, x)
	l.s.Put(w, eye)
	l.s.SpMM(b, g, a, kernels.Gather{}, kernels.Span{Hi: n})
	l.s.GEMM(c, b, w, kernels.NN, nil)
	l.s.Add(c, c, a)
	l.s.Forward(c, c, &kernels.Epilogue{Act: kernels.ReLU}, kernels.Span{Hi: n})
	l.s.Zero(a)
	l.s.Get(got, c)
	if err := l.s.Wait(); err != nil {
		l.failf("a chain of ops: %v", err)
		return
	}
	for v := range n {
		for k := range f {
			want := x[v*f+k]
			for e := csr.RowPtr[v]; e < csr.RowPtr[v+1]; e++ {
				want += csr.Val[e] * x[int(csr.Col[e])*f+(k+f-1)%f]
			}
			if want = max(want, 0); got[v*f+k] != want {
				l.failf("a chain of ops: value [%d,%d] is %v, want %v", v, k, got[v*f+k], want)
				return
			}
		}
	}
}

// concurrent: streams of several goroutines work on spans of the same matrices
// and give the bits of one stream.
func concurrent(l *lab) {
	const rows, width, workers = 120, 41, 4
	t := l.trial(layouts[0], "SpMM on %d streams at once", workers)
	p := gather{rows: rows, cols: 90, width: width, rs: true, cs: true, self: true, selfCol: true}
	g, x, ga, _ := p.operands(t)
	ga.Ep = &kernels.Epilogue{Act: kernels.Tanh, Drop: kernels.Dropout{P: 0.3, Key: 5}}
	alone, together := t.result("alone", rows, width), t.result("together", rows, width)
	t.run(func(s kernels.Stream) { s.SpMM(alone.view, g, x.view, ga, kernels.Span{Hi: rows}) })
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			s, err := l.dev.NewStream()
			if err != nil {
				errs[i] = err
				return
			}
			for lo := i; lo < rows; lo += workers {
				s.SpMM(together.view, g, x.view, ga, kernels.Span{Lo: lo, Hi: lo + 1})
			}
			errs[i] = s.Close()
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			l.failf("stream %d of %d: %v", i, workers, err)
		}
	}
	t.s.Get(together.got, together.buf)
	if err := t.s.Wait(); err != nil {
		l.failf("%v", err)
	}
	all := kernels.Span{Hi: rows}
	if !slices.Equal(alone.bits(all), together.bits(all)) {
		t.failf("%s: the bits differ from those of one stream", t.what)
	}
}

// repeat: the same call twice gives the same bits.
func repeat(l *lab) {
	const m, k, n = 64, 130, 33
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
		t := l.trial(layouts[0], "GEMM %s twice", transposition[tr])
		ar, ac, br, bc := m, k, k, n
		if tr == kernels.TN {
			ar, ac = ac, ar
		}
		if tr == kernels.NT {
			br, bc = bc, br
		}
		a, b := t.in("a", ar, ac, random(l.rng, false)), t.in("b", br, bc, random(l.rng, false))
		c, d := t.result("first", m, n), t.result("second", m, n)
		t.run(func(s kernels.Stream) {
			s.GEMM(c.view, a.view, b.view, tr, nil)
			s.GEMM(d.view, a.view, b.view, tr, nil)
		})
		all := kernels.Span{Hi: m}
		if !slices.Equal(c.bits(all), d.bits(all)) {
			t.failf("%s: the bits differ", t.what)
		}
		l.release()
	}
}
