//go:build cgo && amd64 && linux

package main

import (
	"fmt"
	"time"

	"dorylus/kernels"
)

// scaling compares two workers with one, each with a fixed half of the spans.
func (b *bench) scaling() error {
	const f = 128
	x, err := features(b.flat, b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(x)
	y, err := b.flat.Alloc(b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(y)
	for _, kind := range []struct {
		name  string
		dev   kernels.Device
		spans []kernels.Span
	}{
		{"untiled", b.flat, spans(b.csr, b.part(2), chunkEdges)},
		{"tiled", b.tiled, spans(b.csr, b.part(4), int64(edgesOf(b.csr, []kernels.Span{b.part(2)})))[:2]},
	} {
		g, err := newGather(kind.dev, b.csr)
		if err != nil {
			return err
		}
		half := func(w, job int) {
			for i := job; i < len(kind.spans); i += 2 {
				g.streams[w].SpMM(y, g.g, x, kernels.Gather{}, kind.spans[i])
			}
		}
		half(0, 0) // makes the tables
		one := &variant{jobs: 2, workers: 1, run: half}
		two := &variant{jobs: 2, workers: 2, run: half}
		compete(b.rounds, one, two)
		b.least("K10", fmt.Sprintf("F=128 %s, 1 worker / 2 workers", kind.name), 2*one.perWorker()/2/two.perWorker(), 1.75, "CPU time per worker")
		if err := g.close(); err != nil {
			return err
		}
	}
	return nil
}

// products compares GEMM with the processor's peak.
func (b *bench) products() error {
	s, err := b.flat.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := b.flat.NewStream()
	if err != nil {
		return err
	}
	defer t.Close()
	streams := []kernels.Stream{s, t}
	var flop float64
	peak := &variant{jobs: 1, workers: 1, run: func(int, int) { flop = b.probe.FMA(2_000_000) }}
	compete(b.rounds+2, peak)
	top := flop / float64(peak.best)
	for _, c := range []struct {
		trans   kernels.Trans
		m, n, k int
		bar     float64
	}{
		{kernels.NN, 4096, 128, 602, 0.7}, {kernels.NN, 4096, 128, 128, 0.7}, {kernels.NN, 4096, 41, 128, 0.45},
		{kernels.TN, 602, 128, 4096, 0.7},
	} {
		ar, ac := c.m, c.k
		if c.trans == kernels.TN {
			ar, ac = c.k, c.m
		}
		var mats [3]*kernels.Mat
		dst := make([]*kernels.Mat, workers)
		for i, size := range [][2]int{{ar, ac}, {c.k, c.n}} {
			if mats[i], err = features(b.flat, size[0], size[1]); err != nil {
				return err
			}
			defer b.flat.Free(mats[i])
		}
		for w := range dst {
			if dst[w], err = b.flat.Alloc(c.m, c.n); err != nil {
				return err
			}
			defer b.flat.Free(dst[w])
		}
		one := &variant{jobs: 1, workers: 1, run: func(w, _ int) { streams[w].GEMM(dst[w], mats[0], mats[1], c.trans, nil) }}
		two := &variant{jobs: 2, workers: 2, run: func(_, job int) { streams[job].GEMM(dst[job], mats[0], mats[1], c.trans, nil) }}
		compete(2*b.rounds, one, two)
		rate := 2 * float64(c.m) * float64(c.n) * float64(c.k) / float64(one.best)
		name := fmt.Sprintf("GEMM %dx%dx%d", c.m, c.n, c.k)
		note := fmt.Sprintf("%.0f of %.0f GFLOP/s", rate, top)
		if c.trans == kernels.TN {
			b.least("K13", name+" weight gradient: 1 worker / 2 workers", 2*float64(one.best)/two.perWorker(), 1.6, note)
			continue
		}
		b.least("K13", name+" / peak", rate/top, c.bar, note)
	}
	return nil
}

// overhead is what a call costs beside its work, at the default span and the
// narrowest width.
func (b *bench) overhead() error {
	const f, calls = 16, 20000
	x, err := features(b.flat, b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(x)
	y, err := b.flat.Alloc(b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(y)
	empty := &kernels.CSR{Cols: b.vertices, RowPtr: make([]int64, b.vertices+1)}
	idle, err := newGather(b.flat, empty)
	if err != nil {
		return err
	}
	g, err := newGather(b.flat, b.csr)
	if err != nil {
		return err
	}
	cut := spans(b.csr, b.part(2), chunkEdges)
	call := &variant{jobs: 1, workers: 1, run: func(int, int) {
		for range calls {
			idle.streams[0].SpMM(y, idle.g, x, kernels.Gather{}, kernels.Span{Hi: 1})
		}
	}}
	cross := &variant{jobs: 1, workers: 1, run: func(int, int) {
		for range calls {
			b.probe.Crossing(x.Host)
		}
	}}
	work := g.variant("", y, x, cut)
	compete(b.rounds, call, cross, work)
	per := time.Duration(float64(call.best) / calls)
	chunk := float64(work.total) / float64(len(cut))
	b.most("K14", "an empty SpMM call / a span of 32k edges, F=16", float64(per)/chunk, 0.01,
		fmt.Sprintf("%v a call, of it %v for crossing into C", per, time.Duration(float64(cross.best)/calls)))
	if err := idle.close(); err != nil {
		return err
	}
	return g.close()
}

// memory compares the arena with the Go heap for the same gather.
func (b *bench) memory() error {
	const f = 128
	g, err := newGather(b.flat, b.csr)
	if err != nil {
		return err
	}
	x, err := features(b.flat, b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(x)
	y, err := b.flat.Alloc(b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(y)
	heap := func(m *kernels.Mat) *kernels.Mat {
		return kernels.FromSlice(m.Rows, m.Cols, append(make([]float32, 0, len(m.Host)), m.Host...))
	}
	cut := spans(b.csr, b.part(2), chunkEdges)
	arena, onHeap := g.variant("", y, x, cut), g.variant("", heap(y), heap(x), cut)
	compete(b.rounds, arena, onHeap)
	b.least("K15", "F=128 untiled, Go heap / arena", onHeap.perWorker()/arena.perWorker(), 0.97, "3 % of noise allowed")
	return g.close()
}
