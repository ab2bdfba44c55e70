package kerneltest

import (
	"fmt"
	"math"
	"slices"

	"dorylus/kernels"
)

// A layout says where a matrix lies in its buffer and how far apart its rows are.
type layout struct {
	name   string
	off    int // values before the first row: guards
	stride func(cols int) int
}

// layouts are those of Alloc, of a packed slice, and of a view of something wider.
var layouts = []layout{
	{"aligned", 16, kernels.PadCols},
	{"tight", 1, func(cols int) int { return cols }},
	{"wide", 7, func(cols int) int { return cols + 5 }},
}

const guards = 19 // values after the last row

// poison is what outputs, padding and guards hold before an op: a NaN that no
// arithmetic makes.
var poison = math.Float32frombits(0x7fc5a5a5)

// An array is a matrix with guards on all sides, and what it should hold.
type array struct {
	name      string
	buf, view *kernels.Mat
	img       []float32 // the whole buffer before the op
	got       []float32 // and after it
	out       bool
}

// at is the place of (r,c) in img and got.
func (a *array) at(r, c int) int { return a.off() + r*a.view.Stride + c }

func (a *array) off() int { return (len(a.img) - guards) - extentOf(a.view) }

func extentOf(m *kernels.Mat) int {
	if m.Rows == 0 || m.Cols == 0 {
		return 0
	}
	return (m.Rows-1)*m.Stride + m.Cols
}

// val is the value before the op.
func (a *array) val(r, c int) float64 { return float64(a.img[a.at(r, c)]) }

// A trial is one call of one op: its operands, then the comparison.
type trial struct {
	*lab
	what   string
	lay    layout
	arrays []*array
	held   []func() error // comparisons of the host slices that the op was given
}

// trial begins a call described by the format, with operands laid out as lay.
func (l *lab) trial(lay layout, format string, args ...any) *trial {
	return &trial{lab: l, lay: lay, what: fmt.Sprintf(format, args...) + ", " + lay.name}
}

func (t *trial) array(name string, rows, cols int, lay layout, fill func(r, c int) float32) *array {
	view := &kernels.Mat{Rows: rows, Cols: cols, Stride: lay.stride(cols)}
	n := extentOf(view)
	a := &array{name: name, view: view, img: make([]float32, lay.off+n+guards)}
	for i := range a.img {
		a.img[i] = poison
	}
	for r := range rows {
		for c := range cols {
			a.img[a.at(r, c)] = fill(r, c)
		}
	}
	a.buf = t.alloc(1, len(a.img))
	if a.buf.Host != nil {
		view.Host = a.buf.Host[lay.off : lay.off+n : lay.off+n]
	}
	if a.buf.Addr != 0 {
		view.Addr = a.buf.Addr + uintptr(lay.off)*4
	}
	t.arrays = append(t.arrays, a)
	return a
}

// in is an operand that the op must not change.
func (t *trial) in(name string, rows, cols int, fill func(r, c int) float32) *array {
	return t.array(name, rows, cols, t.lay, fill)
}

// col is an operand of n x 1 with stride 1.
func (t *trial) col(name string, n int, fill func(r, c int) float32) *array {
	lay := t.lay
	lay.stride = func(int) int { return 1 }
	return t.array(name, n, 1, lay, fill)
}

// result is an output that starts as poison.
func (t *trial) result(name string, rows, cols int) *array {
	a := t.in(name, rows, cols, func(int, int) float32 { return poison })
	a.out = true
	return a
}

// resultCol is an output of n x 1 with stride 1.
func (t *trial) resultCol(name string, n int) *array {
	a := t.col(name, n, func(int, int) float32 { return poison })
	a.out = true
	return a
}

// hold remembers a host slice that the op must not change.
func hold[E comparable](t *trial, name string, s []E) []E {
	before := slices.Clone(s)
	t.held = append(t.held, func() error {
		for i := range s {
			if s[i] != before[i] && (s[i] == s[i] || before[i] == before[i]) {
				return fmt.Errorf("the op changed its input %s[%d] from %v to %v", name, i, before[i], s[i])
			}
		}
		return nil
	})
	return s
}

// run fills the operands on the device, runs op, and reads everything back.
func (t *trial) run(op func(s kernels.Stream)) {
	for _, a := range t.arrays {
		t.s.Put(a.buf, a.img)
	}
	if err := t.s.Wait(); err != nil {
		panic(fmt.Sprintf("%s: put the operands: %v", t.what, err))
	}
	op(t.s)
	if err := t.s.Wait(); err != nil {
		panic(fmt.Sprintf("%s: %v", t.what, err))
	}
	for _, a := range t.arrays {
		a.got = make([]float32, len(a.img))
		t.s.Get(a.got, a.buf)
	}
	if err := t.s.Wait(); err != nil {
		panic(fmt.Sprintf("%s: get the results: %v", t.what, err))
	}
	for _, h := range t.held {
		if err := h(); err != nil {
			t.failf("%s: %v", t.what, err)
		}
	}
	for _, a := range t.arrays {
		if !a.out {
			t.untouched(a, func(int, int) bool { return false })
		}
	}
}

// untouched compares bit by bit what may not be written: all but the elements of
// which written is true.
func (t *trial) untouched(a *array, written func(r, c int) bool) {
	off, n := a.off(), extentOf(a.view)
	for i := range a.img {
		was, is := math.Float32bits(a.img[i]), math.Float32bits(a.got[i])
		if was == is {
			continue
		}
		switch p := i - off; {
		case p < 0:
			t.failf("%s: wrote %v to the guard %d values before %s", t.what, a.got[i], -p, a.name)
		case p >= n:
			t.failf("%s: wrote %v to the guard %d values after %s", t.what, a.got[i], p-n+1, a.name)
		default:
			r, c := p/a.view.Stride, p%a.view.Stride
			if c >= a.view.Cols {
				t.failf("%s: wrote %v to padding, column %d of row %d of %s, which has %d columns", t.what, a.got[i], c, r, a.name, a.view.Cols)
			} else if !written(r, c) {
				t.failf("%s: changed %s[%d,%d] from %v to %v", t.what, a.name, r, c, a.img[i], a.got[i])
			} else {
				continue
			}
		}
		return
	}
}

// check compares the rows of an output with what they should be, and all else
// around them with what it was.
func (t *trial) check(a *array, rows kernels.Span, want func(r, c int) value) {
	worst, wrong, text := -1.0, 0, ""
	for r := rows.Lo; r < rows.Hi; r++ {
		for c := range a.view.Cols {
			got, w := float64(a.got[a.at(r, c)]), want(r, c)
			miss := w.miss(got)
			if miss > 1 {
				wrong++
			}
			if miss > worst {
				worst = miss
				text = fmt.Sprintf("%s[%d,%d] is %v, want %v ± %.3g", a.name, r, c, got, w.v, w.tol)
			}
		}
	}
	if wrong > 0 {
		t.failf("%s: %s (%.3g tolerances off, the worst of %d wrong in %d x %d)", t.what, text, worst, wrong, rows.Len(), a.view.Cols)
	}
	t.untouched(a, func(r, _ int) bool { return r >= rows.Lo && r < rows.Hi })
}

// bits is an output's rows, for comparisons that allow no difference.
func (a *array) bits(rows kernels.Span) []uint32 {
	var b []uint32
	for r := rows.Lo; r < rows.Hi; r++ {
		for c := range a.view.Cols {
			b = append(b, math.Float32bits(a.got[a.at(r, c)]))
		}
	}
	return b
}
