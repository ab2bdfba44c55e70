package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
)

type config struct {
	store, driver string
	widths        []int
	rounds, check int
	ordinal       int
	rateBytes     int64
}

// measured is what the command kernels writes.
type measured struct {
	Device   string      `json:"device"` // "NVIDIA H200 9.0, driver 12.8, PTX sm_80"
	Emulated bool        `json:"emulated"`
	L2       int64       `json:"l2_bytes"`
	Memory   int64       `json:"memory_bytes"`
	Vertices int         `json:"vertices"`
	Edges    int64       `json:"edges"`
	Rates    *cuda.Rates `json:"rates,omitempty"` // of a real device only
	Gathers  []gather    `json:"gathers"`
	Products []product   `json:"products"`
}

// gather is the sum over in-edges of rows of one width, without weights.
type gather struct {
	Op    string `json:"op"` // "spmm"; "spmmt": along the transpose
	Width int    `json:"width"`
	// Bytes are those that the multiprocessors ask for: a row for every edge, in sectors of
	// 32 bytes, its index, and the output. Least are those that have to come from memory at
	// least: each row once.
	Bytes int64 `json:"bytes"`
	Least int64 `json:"least_bytes"`
	// Error is the largest difference from the processor's, of the sum of the values' sizes.
	Error float64 `json:"error,omitempty"`
	*Times
	// Of the rate that a copy within the L2 cache reaches, and one through memory.
	OfL2     float64 `json:"of_l2_rate,omitempty"`
	OfMemory float64 `json:"of_memory_rate,omitempty"`
}

// product is a GEMM of the model's layers.
type product struct {
	Op      string `json:"op"`
	M, N, K int
	*Times
	TFlops float64 `json:"tflops,omitempty"`
}

// Times are of a real device only.
type Times struct {
	Median float64 `json:"ms"`
	Best   float64 `json:"best_ms"`
	GBs    float64 `json:"gb_s,omitempty"`
}

// bench is a device with what is measured on it.
type bench struct {
	config
	d   *cuda.Device
	s   kernels.Stream
	csr *kernels.CSR
	g   kernels.Graph
	out *measured
}

// measure does all that the command kernels does.
func measure(c config) (m *measured, err error) {
	if c.store == "" {
		return nil, errors.New("no graph: give -store, a folder that dorylus-engine prepare has made")
	}
	st, err := store.Open(c.store, store.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	d, err := cuda.Open(cuda.Options{Driver: c.driver, Ordinal: c.ordinal})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	b := &bench{config: c, d: d, csr: &kernels.CSR{Cols: st.In.Cols, RowPtr: st.In.RowPtr, Col: st.In.Col}}
	b.out = &measured{Device: d.Describe(), Emulated: d.Emulated(), L2: d.L2(), Memory: d.Memory().Total, Vertices: b.csr.Rows(), Edges: int64(b.csr.Edges())}
	if err := b.csr.Validate(); err != nil {
		return nil, fmt.Errorf("graph of %s: %w", c.store, err)
	}
	if b.s, err = d.NewStream(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.s.Close()) }()
	if b.g, err = d.Load(b.csr); err != nil {
		return nil, err
	}
	defer d.Unload(b.g)
	if !b.out.Emulated {
		r, err := d.Rates(c.rateBytes, 3)
		if err != nil {
			return nil, err
		}
		b.out.Rates = &r
	}
	for _, w := range c.widths {
		if err := b.gathers(w); err != nil {
			return nil, fmt.Errorf("gather %d columns: %w", w, err)
		}
	}
	for _, p := range []product{{Op: "nn", M: b.csr.Rows(), N: 128, K: 602}, {Op: "nn", M: b.csr.Rows(), N: 41, K: 128}, {Op: "tn", M: 602, N: 128, K: b.csr.Rows()}, {Op: "nt", M: b.csr.Rows(), N: 128, K: 41}} {
		if err := b.product(p); err != nil {
			return nil, fmt.Errorf("product %s of %d x %d x %d: %w", p.Op, p.M, p.N, p.K, err)
		}
	}
	return b.out, nil
}

// time measures ops, on a real device: nil on an emulated one, which runs them once.
func (b *bench) time(bytes int64, ops func()) (*Times, error) {
	if b.out.Emulated {
		ops()
		return nil, b.s.Wait()
	}
	var all []float64
	for i := range b.rounds + 2 {
		ms, err := cuda.Time(b.s, ops)
		if err != nil {
			return nil, err
		}
		if i >= 2 { // before, the device's clocks and caches warm up
			all = append(all, ms)
		}
	}
	slices.Sort(all)
	t := &Times{Median: all[len(all)/2], Best: all[0]}
	t.GBs = float64(bytes) / max(t.Median, 1e-6) / 1e6
	return t, nil
}

// value is entry (r, c) of the matrix that is gathered: no two neighbours alike, exact in
// float32.
func value(r, c int) float32 { return float32((r*131+c*17)%251)/251 - 0.5 }

// filled is a matrix of a device with those values.
func (b *bench) filled(rows, cols int) (*kernels.Mat, error) {
	m, err := b.d.Alloc(rows, cols)
	if err != nil {
		return nil, err
	}
	const part = 1 << 14 // rows, so that the host needs little
	for lo := 0; lo < rows; lo += part {
		hi := min(lo+part, rows)
		v := make([]float32, (hi-lo)*cols)
		for r := lo; r < hi; r++ {
			for c := range cols {
				v[(r-lo)*cols+c] = value(r, c)
			}
		}
		b.s.Put(m.Sub(kernels.Span{Lo: lo, Hi: hi}), v)
		if err := b.s.Wait(); err != nil {
			b.d.Free(m)
			return nil, err
		}
	}
	return m, nil
}

func (b *bench) gathers(width int) error {
	n, edges := b.csr.Rows(), int64(b.csr.Edges())
	x, err := b.filled(b.csr.Cols, width)
	if err != nil {
		return err
	}
	defer b.d.Free(x)
	y, err := b.d.Alloc(n, width)
	if err != nil {
		return err
	}
	defer b.d.Free(y)
	all := kernels.Span{Hi: n}
	row := int64(4*width+31) / 32 * 32
	bytes := edges*(row+4) + int64(n)*(row+8)
	least := int64(n)*(2*row+8) + edges*4
	for _, op := range []string{"spmm", "spmmt"} {
		g := gather{Op: op, Width: width, Bytes: bytes, Least: least}
		if op == "spmm" {
			g.Times, err = b.time(bytes, func() { b.s.SpMM(y, b.g, x, kernels.Gather{}, all) })
		} else {
			if b.csr.Cols != n {
				return fmt.Errorf("the graph has %d rows and %d columns: not one of vertices", n, b.csr.Cols)
			}
			g.Times, err = b.time(bytes, func() { b.s.SpMMT(y, b.g, nil, x, all) })
		}
		if err != nil {
			return err
		}
		if op == "spmm" {
			if g.Error, err = b.compare(y, width); err != nil {
				return err
			}
		}
		if r := b.out.Rates; r != nil && g.Times != nil {
			g.OfL2, g.OfMemory = g.GBs/r.L2Copy, g.GBs/r.Copy
		}
		b.out.Gathers = append(b.out.Gathers, g)
	}
	return nil
}

// compare is the largest error of the first rows, as a share of the sum of the sizes of
// what was added. More than rounding can explain is an error of its own: what was timed
// is then not the gather.
func (b *bench) compare(y *kernels.Mat, width int) (float64, error) {
	rows := min(b.check, b.csr.Rows())
	got := make([]float32, rows*width)
	b.s.Get(got, y.Sub(kernels.Span{Hi: rows}))
	if err := b.s.Wait(); err != nil {
		return 0, err
	}
	worst := 0.0
	for r := range rows {
		for c := range width {
			sum, size := 0.0, 1e-30
			for _, u := range b.csr.Col[b.csr.RowPtr[r]:b.csr.RowPtr[r+1]] {
				v := float64(value(int(u), c))
				sum += v
				size += math.Abs(v)
			}
			e := math.Abs(float64(got[r*width+c])-sum) / size
			if !(e <= 1e-5) {
				return e, fmt.Errorf("row %d, column %d is %g, want %g", r, c, got[r*width+c], sum)
			}
			worst = max(worst, e)
		}
	}
	return worst, nil
}

func (b *bench) product(p product) error {
	ar, ac, br, bc, trans := p.M, p.K, p.K, p.N, kernels.NN
	switch p.Op {
	case "tn":
		ar, ac, trans = p.K, p.M, kernels.TN
	case "nt":
		br, bc, trans = p.N, p.K, kernels.NT
	}
	var mats []*kernels.Mat
	defer func() {
		for _, m := range mats {
			b.d.Free(m)
		}
	}()
	for _, s := range [][2]int{{ar, ac}, {br, bc}, {p.M, p.N}} {
		m, err := b.filled(s[0], s[1]) // zeros would need less power
		if err != nil {
			return err
		}
		mats = append(mats, m)
	}
	var err error
	if p.Times, err = b.time(0, func() { b.s.GEMM(mats[2], mats[0], mats[1], trans, nil) }); err != nil {
		return err
	}
	if p.Times != nil {
		p.TFlops = 2 * float64(p.M) * float64(p.N) * float64(p.K) / p.Median / 1e9
	}
	b.out.Products = append(b.out.Products, p)
	return nil
}
