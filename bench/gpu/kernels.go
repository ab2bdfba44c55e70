package main

import (
	"errors"
	"fmt"
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
	sweep         bool
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
	Sweeps   []sweep     `json:"sweeps,omitempty"`
	Ops      []operation `json:"ops"`
	Products []product   `json:"products"`
}

// cost is what an op moves. Its ceilings are these bytes at the measured rates.
type cost struct {
	// Bytes are those that the multiprocessors ask for: a row for every edge, in sectors of
	// 32 bytes, its index, and the output. Least are those that have to come from memory at
	// least: each row once.
	Bytes int64 `json:"bytes"`
	Least int64 `json:"least_bytes"`
}

// Times are of a real device only.
type Times struct {
	Median float64 `json:"ms"`
	Best   float64 `json:"best_ms"`
	GBs    float64 `json:"gb_s,omitempty"`
	// AtL2 and AtMemory are what Bytes would take at the rate of a copy within the L2 cache,
	// and of one through memory; Floor is Least at the latter: no kernel is faster.
	AtL2     float64 `json:"at_l2_rate_ms,omitempty"`
	AtMemory float64 `json:"at_memory_rate_ms,omitempty"`
	Floor    float64 `json:"floor_ms,omitempty"`
}

// bench is a device with what is measured on it.
type bench struct {
	config
	precision string
	d         *cuda.Device
	s         kernels.Stream
	csr       *kernels.CSR
	g         kernels.Graph
	out       *measured
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
	csr := &kernels.CSR{Cols: st.In.Cols, RowPtr: st.In.RowPtr, Col: st.In.Col}
	back := &kernels.CSR{Cols: st.Out.Cols, RowPtr: st.Out.RowPtr, Col: st.Out.Col}
	for _, g := range []*kernels.CSR{csr, back} {
		if err := g.Validate(); err != nil {
			return nil, fmt.Errorf("graph of %s: %w", c.store, err)
		}
	}
	if csr.Cols != csr.Rows() {
		return nil, fmt.Errorf("the graph of %s has %d rows and %d columns: not one of vertices", c.store, csr.Rows(), csr.Cols)
	}
	m = &measured{Vertices: csr.Rows(), Edges: int64(csr.Edges())}
	for _, precision := range []string{"fp32", "tf32", "bf16"} {
		err := c.on(cuda.Options{Precision: precision}, csr, m, func(b *bench) error { return b.all(back) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", precision, err)
		}
	}
	if c.sweep {
		if err := c.sweeps(csr, m, []int{41, 128}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// all measures what there is in the precision of b's device.
func (b *bench) all(back *kernels.CSR) error {
	if b.precision != "tf32" { // which is of products only
		for _, w := range b.widths {
			if err := b.gathers(w); err != nil {
				return fmt.Errorf("gather %d columns: %w", w, err)
			}
		}
	}
	if b.precision == "fp32" {
		if err := b.panels(slices.Max(b.widths)); err != nil {
			return fmt.Errorf("gather in panels: %w", err)
		}
		if err := b.ops(back); err != nil {
			return err
		}
	}
	return b.products()
}

// on runs f on a device opened with o, with the graph and a stream.
func (c config) on(o cuda.Options, csr *kernels.CSR, out *measured, f func(*bench) error) (err error) {
	o.Driver, o.Ordinal = c.driver, c.ordinal
	b := &bench{config: c, csr: csr, out: out, precision: o.Precision}
	if b.precision == "" {
		b.precision = "fp32"
	}
	if b.d, err = cuda.Open(o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.d.Close()) }()
	if out.Device == "" {
		out.Device, out.Emulated, out.L2, out.Memory = b.d.Describe(), b.d.Emulated(), b.d.L2(), b.d.Memory().Total
	}
	if out.Rates == nil && !out.Emulated {
		r, err := b.d.Rates(c.rateBytes, 3)
		if err != nil {
			return err
		}
		out.Rates = &r
	}
	if b.s, err = b.d.NewStream(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.s.Close()) }()
	if b.g, err = b.d.Load(csr); err != nil {
		return err
	}
	defer b.d.Unload(b.g)
	return f(b)
}

// time measures ops, on a real device: nil on an emulated one, which runs them once. c
// gives them their ceilings; nil: none.
func (b *bench) time(c *cost, ops func()) (*Times, error) {
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
	if c != nil {
		t.ceilings(*c, *b.out.Rates)
	}
	return t, nil
}

// ceilings puts what moves beside the rates.
func (t *Times) ceilings(c cost, r cuda.Rates) {
	t.GBs = float64(c.Bytes) / max(t.Median, 1e-6) / 1e6
	t.AtL2, t.AtMemory = float64(c.Bytes)/r.L2Copy/1e6, float64(c.Bytes)/r.Copy/1e6
	t.Floor = float64(c.Least) / r.Copy / 1e6
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
