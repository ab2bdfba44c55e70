//go:build cgo && amd64 && linux

package main

import (
	"fmt"
	"math/rand/v2"

	"dorylus/kernels"
	"dorylus/kernels/cpu"
)

const (
	workers    = 2
	chunkEdges = 32 << 10 // edges of a span of the untiled gather
)

// A bench holds the devices and graphs that the parts share.
type bench struct {
	config
	*report
	flat, tiled kernels.Device // the best instruction set, never and always tiled
	probe       cpu.Probe
	csr         *kernels.CSR

	flatAt, naiveAt map[int]float64 // ns per edge on the shuffled graph, by width
}

func (b *bench) open() error {
	var err error
	if b.flat, err = cpu.OpenWith(cpu.Options{TileBytes: -1}); err != nil {
		return err
	}
	if b.tiled, err = cpu.OpenWith(cpu.Options{TileBytes: b.tileBytes}); err != nil {
		return err
	}
	b.flatAt, b.naiveAt = map[int]float64{}, map[int]float64{}
	b.probe, err = cpu.NewProbe(b.flat)
	return err
}

func (b *bench) close() error {
	if err := b.flat.Close(); err != nil {
		return err
	}
	return b.tiled.Close()
}

// A gather is SpMM on one device with one stream per worker.
type gather struct {
	dev     kernels.Device
	g       kernels.Graph
	streams []kernels.Stream
}

func newGather(dev kernels.Device, csr *kernels.CSR) (*gather, error) {
	x := &gather{dev: dev}
	var err error
	if x.g, err = dev.Load(csr); err != nil {
		return nil, err
	}
	for range workers {
		s, err := dev.NewStream()
		if err != nil {
			return nil, err
		}
		x.streams = append(x.streams, s)
	}
	return x, nil
}

func (x *gather) close() error {
	x.dev.Unload(x.g)
	for _, s := range x.streams {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// variant gathers the spans.
func (x *gather) variant(name string, dst, src *kernels.Mat, spans []kernels.Span) *variant {
	return &variant{name: name, jobs: len(spans), workers: workers, run: func(w, job int) {
		x.streams[w].SpMM(dst, x.g, src, kernels.Gather{}, spans[job])
	}}
}

// features is a filled matrix: untouched memory would all be one page of zeros.
func features(dev kernels.Device, rows, cols int) (*kernels.Mat, error) {
	m, err := dev.Alloc(rows, cols)
	if err != nil {
		return nil, err
	}
	for i := range m.Host {
		m.Host[i] = float32(i%127) / 127
	}
	return m, nil
}

// edgesOf counts the edges of spans.
func edgesOf(g *kernels.CSR, spans []kernels.Span) float64 {
	n := int64(0)
	for _, s := range spans {
		n += g.RowPtr[s.Hi] - g.RowPtr[s.Lo]
	}
	return float64(n)
}

// part is the first share/16 of the rows, which are in random order.
func (b *bench) part(share int) kernels.Span { return kernels.Span{Hi: b.vertices * share / 16} }

// width measures every gather of f columns on the shuffled graph.
func (b *bench) width(f int) error {
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
	flat, err := newGather(b.flat, b.csr)
	if err != nil {
		return err
	}
	tiled, err := newGather(b.tiled, b.csr)
	if err != nil {
		return err
	}
	// The slow ones do a smaller part; the tiled one needs long spans.
	few, some := spans(b.csr, b.part(1), chunkEdges), spans(b.csr, b.part(4), chunkEdges)
	long := spans(b.csr, b.part(8), int64(edgesOf(b.csr, []kernels.Span{b.part(2)})))
	if b.quick {
		long = spans(b.csr, b.part(16), int64(len(b.csr.Col)/2+1))
	}
	tiled.streams[0].SpMM(y, tiled.g, x, kernels.Gather{}, long[0]) // makes the table
	naive := &variant{name: "naive", jobs: len(few), workers: workers, run: func(_, job int) { b.probe.Naive(y, b.csr, x, few[job]) }}
	vf, vt := flat.variant("untiled", y, x, some), tiled.variant("tiled", y, x, long)
	ceiling, err := b.ceiling(x)
	if err != nil {
		return err
	}
	inTile, err := b.tileCeiling(f)
	if err != nil {
		return err
	}
	rounds := b.rounds
	if f > 200 {
		rounds = (rounds + 1) / 2
	}
	compete(rounds, append(append([]*variant{naive, vf, vt}, ceiling.all...), inTile.all...)...)
	inTile.free()

	ns := map[*variant]float64{
		naive: naive.perWorker() / edgesOf(b.csr, few),
		vf:    vf.perWorker() / edgesOf(b.csr, some),
		vt:    vt.perWorker() / edgesOf(b.csr, long),
	}
	b.naiveAt[f], b.flatAt[f] = ns[naive], ns[vf]
	bytes := float64(4 * x.Stride)
	b.row("shuffled", f, "naive", ns[naive], bytes, 0, "")
	b.row("shuffled", f, "untiled", ns[vf], bytes, ceiling.best(), ceiling.name())
	b.row("shuffled", f, "tiled", ns[vt], bytes, inTile.best(), inTile.name())
	b.judge(f, ns[naive], ns[vf], ns[vt], bytes, ceiling, inTile)
	if err := flat.close(); err != nil {
		return err
	}
	return tiled.close()
}

// row adds a line to the table.
func (b *bench) row(graph string, f int, kernel string, ns, bytes, ceiling float64, probe string) {
	r := row{Graph: graph, Width: f, Kernel: kernel, NsPerEdge: ns, GBs: bytes / ns, Ceiling: ceiling, Probe: probe}
	if n := b.naiveAt[f]; n > 0 && graph == "shuffled" {
		r.OverNaive = n / ns
	}
	b.Rows = append(b.Rows, r)
}

// judge compares with the goals of a width; those between the named ones follow
// the nearest.
func (b *bench) judge(f int, naive, flat, tiled, bytes float64, ceiling, inTile *ceilings) {
	at := fmt.Sprintf("F=%d", f)
	bar := 0.65
	if f <= 32 || f > 256 {
		bar = 0.55
	}
	b.least("K1", at+" untiled / probe gather, T1", bytes/flat/ceiling.best(), bar, "")
	if f >= 41 {
		b.least("K2", at+" probe gather, T1 / no prefetch", ceiling.best()/ceiling.plain(), 1.4, "a property of the machine")
	}
	b.least("K3", at+" tiled / probe gather on a tile", bytes/tiled/inTile.best(), 0.5, "")
	bar = 4.0
	if f <= 32 {
		bar = 3
	}
	b.least("K4", at+" naive / best", naive/min(flat, tiled), bar, "")
	switch {
	case f <= 32:
	case f < 64:
		b.least("K5", at+" untiled / tiled", flat/tiled, 1.5, "")
	case f <= 128:
		b.least("K5", at+" untiled / tiled", flat/tiled, 1.8, "")
	default:
		b.least("K5", at+" untiled / tiled", flat/tiled, 2.5, "")
	}
}

// ceilings are probes of random rows of one table.
type ceilings struct {
	all   []*variant // without prefetch, then 8, 16, 32 rows ahead
	bytes float64    // read by each
	what  string
	free  func()
}

var distances = []int{0, 8, 16, 32}

func (b *bench) ceiling(x *kernels.Mat) (*ceilings, error) {
	const jobs = 8
	n := 12 << 20 / x.Stride / jobs * jobs // about 48 MiB of rows
	if b.quick {
		n /= 8
	}
	ids := make([]int32, n)
	r := rand.New(rand.NewPCG(b.seed, 5))
	for i := range ids {
		ids[i] = int32(r.IntN(x.Rows))
	}
	c := &ceilings{bytes: float64(n * 4 * x.Stride), what: fmt.Sprintf("random rows of %.1f MiB", float64(x.Rows*x.Stride)/(1<<18)), free: func() {}}
	for _, ahead := range distances {
		c.all = append(c.all, &variant{name: fmt.Sprint(ahead), jobs: jobs, workers: workers, run: func(_, job int) {
			b.probe.Gather(x, ids[job*n/jobs:(job+1)*n/jobs], ahead)
		}})
	}
	return c, nil
}

// tileCeiling is the probe on a table as large and wide as a tile for f columns.
func (b *bench) tileCeiling(f int) (*ceilings, error) {
	panels := (f + 63) / 64
	width := kernels.PadCols(max(2, (f+panels-1)/panels))
	size := b.tileBytes
	if size == 0 {
		size = cpu.DefaultTileBytes
	}
	x, err := features(b.flat, size/4/width, width)
	if err != nil {
		return nil, err
	}
	c, err := b.ceiling(x)
	if err != nil {
		return nil, err
	}
	c.free = func() { b.flat.Free(x) }
	return c, nil
}

// best is the bandwidth with prefetch, GB/s; plain that without.
func (c *ceilings) best() float64 {
	best := 0.0
	for _, v := range c.all[1:] {
		best = max(best, c.bytes/v.perWorker())
	}
	return best
}

func (c *ceilings) plain() float64 { return c.bytes / c.all[0].perWorker() }
func (c *ceilings) name() string   { return c.what }
