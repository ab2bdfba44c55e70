package main

import (
	"fmt"
	"math"

	"dorylus/kernels"
	"dorylus/kernels/cuda"
)

// gather is the sum over in-edges of rows of one width, without weights.
type gather struct {
	Op        string `json:"op"` // "spmm"; "spmmt": along the transpose
	Width     int    `json:"width"`
	Precision string `json:"precision"`
	// Panel is how many columns a call gathers, one panel after the other; 0: all.
	Panel int `json:"panel,omitempty"`
	cost
	// Error is the largest difference from the processor's, of the sum of the values' sizes.
	Error float64 `json:"error,omitempty"`
	*Times
}

// sector is the bytes of the 32-byte sectors that some bytes in a row take.
func sector(bytes int) int64 { return int64(bytes+31) / 32 * 32 }

// gatherCost is that of a gather of rows of width values, size bytes each. With less than 4
// bytes the kernels make a narrow copy first, which is counted.
func (b *bench) gatherCost(width, size int) cost {
	n, edges := int64(b.csr.Rows()), int64(b.csr.Edges())
	row, out := sector(size*width), sector(4*width)
	c := cost{Bytes: edges*(row+4) + n*(out+8), Least: n*(row+out+8) + edges*4}
	if size < 4 {
		c.Bytes += n * (out + row)
		c.Least += n * (out + row)
	}
	return c
}

// gathers measures one width along both directions.
func (b *bench) gathers(width int) error {
	n := b.csr.Rows()
	all := kernels.Span{Hi: n}
	x, y, free, err := b.pair(b.csr.Cols, n, width)
	if err != nil {
		return err
	}
	defer free()
	size := 4
	if b.precision == "bf16" {
		size = 2
	}
	g := gather{Op: "spmm", Width: width, Precision: b.precision, cost: b.gatherCost(width, size)}
	if g.Times, err = b.time(&g.cost, func() { b.s.SpMM(y, b.g, x, kernels.Gather{}, all) }); err != nil {
		return err
	}
	if g.Error, err = b.compare(y, width); err != nil {
		return err
	}
	b.out.Gathers = append(b.out.Gathers, g)
	if b.precision != "fp32" { // the transpose is gathered in fp32 whatever the precision
		return nil
	}
	g = gather{Op: "spmmt", Width: width, Precision: b.precision, cost: b.gatherCost(width, 4)}
	if g.Times, err = b.time(&g.cost, func() { b.s.SpMMT(y, b.g, nil, x, all) }); err != nil {
		return err
	}
	b.out.Gathers = append(b.out.Gathers, g)
	return nil
}

// pair is a filled matrix and one of zeros; free gives both back.
func (b *bench) pair(rows, outRows, width int) (x, y *kernels.Mat, free func(), err error) {
	if x, err = b.filled(rows, width); err != nil {
		return nil, nil, nil, err
	}
	if y, err = b.d.Alloc(outRows, width); err != nil {
		b.d.Free(x)
		return nil, nil, nil, err
	}
	return x, y, func() { b.d.Free(x); b.d.Free(y) }, nil
}

// panels measures gathers of a width in panels of columns, one call each.
func (b *bench) panels(width int) error {
	n := b.csr.Rows()
	x, y, free, err := b.pair(b.csr.Cols, n, width)
	if err != nil {
		return err
	}
	defer free()
	for _, panel := range []int{32, 64, 128} {
		if panel >= width {
			break
		}
		g := gather{Op: "spmm", Width: width, Precision: b.precision, Panel: panel, cost: b.gatherCost(width, 4)}
		g.Times, err = b.time(&g.cost, func() {
			for lo := 0; lo < width; lo += panel {
				hi := min(lo+panel, width)
				b.s.SpMM(y.Columns(lo, hi), b.g, x.Columns(lo, hi), kernels.Gather{}, kernels.Span{Hi: n})
			}
		})
		if err != nil {
			return err
		}
		if g.Error, err = b.compare(y, width); err != nil {
			return err
		}
		b.out.Gathers = append(b.out.Gathers, g)
	}
	return nil
}

// sweep is a gather with rows or columns cut otherwise than by default.
type sweep struct {
	Cut cuda.Cut `json:"cut"`
	gather
}

// cuts are what is tried of rows' bounds and tiles.
var cuts = []cuda.Cut{
	{Tile: 32}, {Tile: 64}, {Tile: 128},
	{Wide: 8}, {Wide: 16}, {Wide: 64}, {Wide: 128},
	{Long: 512}, {Long: 1024}, {Long: 2048}, {Long: 8192}, {Long: 1 << 20},
}

// sweeps measures the widths with each cut, each on a device opened for it.
func (c config) sweeps(csr *kernels.CSR, out *measured, widths []int) error {
	for _, cut := range cuts {
		o := cuda.Options{Cut: cut}
		err := c.on(o, csr, out, func(b *bench) error {
			for _, w := range widths {
				x, y, free, err := b.pair(csr.Cols, csr.Rows(), w)
				if err != nil {
					return err
				}
				g := gather{Op: "spmm", Width: w, Precision: b.precision, cost: b.gatherCost(w, 4)}
				g.Times, err = b.time(&g.cost, func() { b.s.SpMM(y, b.g, x, kernels.Gather{}, kernels.Span{Hi: csr.Rows()}) })
				if err == nil {
					g.Error, err = b.compare(y, w)
				}
				free()
				if err != nil {
					return err
				}
				out.Sweeps = append(out.Sweeps, sweep{cut, g})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cut %+v: %w", cut, err)
		}
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
	tol := 1e-5
	if b.precision == "bf16" {
		tol += 1.0 / 256 // each value is rounded to 8 bits
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
			if !(e <= tol) {
				return e, fmt.Errorf("row %d, column %d is %g, want %g", r, c, got[r*width+c], sum)
			}
			worst = max(worst, e)
		}
	}
	return worst, nil
}
