//go:build cgo && amd64 && linux

package main

import (
	"context"
	"fmt"

	"dorylus/engine/order"
	"dorylus/kernels"
	"dorylus/kernels/cpu"
)

// padding compares rows of 41 values at stride 48 with the same at stride 41.
func (b *bench) padding() error {
	x, err := features(b.flat, b.vertices, 48)
	if err != nil {
		return err
	}
	defer b.flat.Free(x)
	y, err := b.flat.Alloc(b.vertices, 41)
	if err != nil {
		return err
	}
	defer b.flat.Free(y)
	g, err := newGather(b.flat, b.csr)
	if err != nil {
		return err
	}
	few := spans(b.csr, b.part(2), chunkEdges)
	at := func(stride int) *kernels.Mat {
		return &kernels.Mat{Rows: b.vertices, Cols: 41, Stride: stride, Host: x.Host}
	}
	tight, padded := g.variant("stride 41", y, at(41), few), g.variant("stride 48", y, at(48), few)
	compete(b.rounds, tight, padded)
	b.least("K8", "41 columns: stride 41 / stride 48", tight.perWorker()/padded.perWorker(), 1.4, "untiled")
	return g.close()
}

// orders measures what an order of the vertices by communities is worth.
func (b *bench) orders(p *planted) error {
	const f = 128
	r, err := order.Compute(context.Background(), order.Graph{In: b.csr, Out: b.csr}, order.Options{Method: order.LPA, Seed: b.seed, Threads: workers})
	if err != nil {
		return err
	}
	byLabel, byCommunity := renamed(b.csr, r.Rank), p.csr(natural(b.vertices))
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
	graphs := []*kernels.CSR{b.csr, byLabel, byCommunity}
	var all []*variant
	var edges []float64
	for _, csr := range graphs {
		g, err := newGather(b.flat, csr)
		if err != nil {
			return err
		}
		// Every eighth span: the rows are not in random order.
		var part []kernels.Span
		for i, s := range spans(csr, kernels.Span{Hi: b.vertices}, chunkEdges) {
			if i/16%8 == 0 {
				part = append(part, s)
			}
		}
		all, edges = append(all, g.variant("", y, x, part)), append(edges, edgesOf(csr, part))
		defer g.close()
	}
	few := spans(b.csr, b.part(1), chunkEdges)
	naive := &variant{jobs: len(few), workers: workers, run: func(_, job int) { b.probe.Naive(y, b.csr, x, few[job]) }}
	compete(b.rounds, append(all, naive)...)
	ns := make([]float64, len(all))
	for i, v := range all {
		ns[i] = v.perWorker() / edges[i]
	}
	bytes := float64(4 * x.Stride)
	b.row("label order", f, "untiled", ns[1], bytes, 0, "")
	b.row("communities", f, "untiled", ns[2], bytes, 0, "")
	b.least("K7", "F=128 untiled, shuffled / label order", ns[0]/ns[1], 1.6, fmt.Sprintf("true communities: %.2f", ns[0]/ns[2]))
	pass := naive.perWorker() / edgesOf(b.csr, few) * float64(len(b.csr.Col)) / 1e9
	b.most("K7", "label order's time / naive passes at F=128", r.Seconds/pass, 3, "wall time of the order, so other load counts")
	return nil
}

// rmat measures a graph of hubs, sorted by degree: speed, and the balance of two
// workers that take spans of equal edges by turns.
func (b *bench) rmat() error {
	const f = 64
	scale, degree := 17, 96
	if b.quick {
		scale, degree = 13, 32
	}
	csr := rmat(scale, degree, b.seed)
	x, err := features(b.flat, csr.Cols, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(x)
	y, err := b.flat.Alloc(csr.Cols, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(y)
	g, err := newGather(b.flat, csr)
	if err != nil {
		return err
	}
	cut := spans(csr, kernels.Span{Hi: csr.Cols}, chunkEdges)
	flat := g.variant("untiled", y, x, cut)
	naive := &variant{jobs: len(cut), workers: workers, run: func(_, job int) { b.probe.Naive(y, csr, x, cut[job]) }}
	turns := &variant{jobs: workers, workers: workers, run: func(_, job int) {
		for i := job; i < len(cut); i += workers {
			g.streams[job].SpMM(y, g.g, x, kernels.Gather{}, cut[i])
		}
	}, byLongest: true}
	compete(b.rounds, flat, naive, turns)
	n, bytes := edgesOf(csr, cut), float64(4*x.Stride)
	name := fmt.Sprintf("rmat %d", scale)
	b.row(name, f, "naive", naive.perWorker()/n, bytes, 0, "")
	b.row(name, f, "untiled", flat.perWorker()/n, bytes, 0, "")
	b.least("K4", "RMAT F=64 naive / best", naive.perWorker()/flat.perWorker(), 2, "")
	b.most("K10", "RMAT by degree: longest worker / mean - 1", float64(turns.best)/turns.perWorker()-1, 0.05, "spans by turns")
	return g.close()
}

// sets compares the instruction sets that run here.
func (b *bench) sets() error {
	const f = 64
	x, err := features(b.flat, b.vertices, f)
	if err != nil {
		return err
	}
	defer b.flat.Free(x)
	few := spans(b.csr, b.part(1), chunkEdges)
	var all []*variant
	var outs []*kernels.Mat
	for _, isa := range cpu.ISAs() {
		dev, err := cpu.OpenWith(cpu.Options{ISA: isa, TileBytes: -1})
		if err != nil {
			return err
		}
		g, err := newGather(dev, b.csr)
		if err != nil {
			return err
		}
		y, err := b.flat.Alloc(b.vertices, f)
		if err != nil {
			return err
		}
		defer b.flat.Free(y)
		all, outs = append(all, g.variant(isa, y, x, few)), append(outs, y)
		defer func() { g.close(); dev.Close() }()
	}
	compete(b.rounds, all...)
	worst := 0.0
	for _, y := range outs[1:] {
		for v := range b.part(1).Hi {
			for c, want := range outs[0].Row(v) {
				if d := float64(y.Row(v)[c] - want); want != 0 {
					worst = max(worst, d/float64(want), -d/float64(want))
				}
			}
		}
	}
	bytes := float64(4 * x.Stride)
	for _, v := range all {
		b.row("shuffled", f, "untiled "+v.name, v.perWorker()/edgesOf(b.csr, few), bytes, 0, "")
	}
	b.most("K9", "largest relative difference between instruction sets", worst, 1e-5, fmt.Sprint(cpu.ISAs()))
	if len(all) > 2 {
		b.least("K9", "AVX2 / AVX-512 speed, F=64", all[2].perWorker()/all[1].perWorker(), 0.65, "")
	} else {
		b.say("K9: %v", cpu.Why("avx512"))
	}
	return nil
}
