package kernels

import (
	"fmt"
	"math"
	"unsafe"
)

// ShapeError is a bug of the caller: an op was given operands that do not fit.
// Ops panic with it before any work is done.
type ShapeError struct {
	Op  string // the method of Stream
	Msg string // which operand, its numbers, and the numbers that would fit
}

// Error says which op was called and what does not fit.
func (e *ShapeError) Error() string { return fmt.Sprintf("kernels: %s: %s", e.Op, e.Msg) }

func shapeError(op, format string, args ...any) *ShapeError {
	return &ShapeError{Op: op, Msg: fmt.Sprintf(format, args...)}
}

// CheckHost panics unless every matrix is in host memory. Devices that compute on
// the host call it after the op's own check; nil matrices are passed over.
func CheckHost(op string, ms ...*Mat) {
	for i, m := range ms {
		if m != nil && m.Host == nil && m.Rows > 0 && m.Cols > 0 {
			panic(shapeError(op, "matrix %d (%d x %d) is in the memory of another device (address %#x)", i, m.Rows, m.Cols, m.Addr))
		}
	}
}

// A check collects nothing: it panics at the first operand that does not fit. Its
// value is the name of the op.
type check string

func (op check) failf(format string, args ...any) { panic(shapeError(string(op), format, args...)) }

// extent is the number of values from the first to the last one of a matrix, or
// -1 where that number is no int64.
func extent(rows, cols, stride int) int64 {
	if rows == 0 || cols == 0 {
		return 0
	}
	r, c, s := int64(rows-1), int64(cols), int64(stride)
	if s > 0 && r > (math.MaxInt64-c)/s {
		return -1
	}
	return r*s + c
}

// mat checks that m is a whole matrix: sizes that make sense, and memory behind
// all of its rows.
func (op check) mat(name string, m *Mat) {
	switch {
	case m == nil:
		op.failf("%s is nil", name)
	case m.Rows < 0 || m.Cols < 0:
		op.failf("%s is %d x %d", name, m.Rows, m.Cols)
	case m.Stride < m.Cols:
		op.failf("%s has rows of %d values only %d apart", name, m.Cols, m.Stride)
	}
	need := extent(m.Rows, m.Cols, m.Stride)
	switch {
	case need < 0:
		op.failf("%s is %d x %d with stride %d: more values than an int64 counts", name, m.Rows, m.Cols, m.Stride)
	case need == 0:
	case m.Host == nil && m.Addr == 0:
		op.failf("%s is %d x %d without memory", name, m.Rows, m.Cols)
	case m.Host != nil && int64(len(m.Host)) < need:
		op.failf("%s is %d x %d with stride %d and needs %d values, its memory holds %d", name, m.Rows, m.Cols, m.Stride, need, len(m.Host))
	}
}

// shape checks that m is a whole matrix of rows x cols; why says where the two
// numbers come from.
func (op check) shape(name string, m *Mat, rows, cols int, why string) {
	op.mat(name, m)
	if m.Rows != rows || m.Cols != cols {
		op.failf("%s is %d x %d, want %d x %d (%s)", name, m.Rows, m.Cols, rows, cols, why)
	}
}

// column checks that m is n x 1 without gaps.
func (op check) column(name string, m *Mat, n int, why string) {
	op.shape(name, m, n, 1, why)
	if m.Stride != 1 {
		op.failf("%s is a column with stride %d, want 1", name, m.Stride)
	}
}

// span checks that rows lies in [0,n).
func (op check) span(rows Span, n int) {
	if rows.Lo < 0 || rows.Hi < rows.Lo || rows.Hi > n {
		op.failf("rows [%d,%d) of %d rows", rows.Lo, rows.Hi, n)
	}
}

// packed checks that a slice holds exactly the values of m.
func (op check) packed(name string, n int, m *Mat) {
	if want := extent(m.Rows, m.Cols, m.Cols); int64(n) != want {
		op.failf("%s holds %d values, want %d (%d x %d)", name, n, want, m.Rows, m.Cols)
	}
}

// graph checks that g is there and has sizes.
func (op check) graph(g Graph) {
	if g == nil {
		op.failf("the graph is nil")
	}
	if g.Rows() < 0 || g.Cols() < 0 || g.Edges() < 0 {
		op.failf("the graph is %d x %d with %d edges", g.Rows(), g.Cols(), g.Edges())
	}
}

// weights checks one value per edge; nil is the graph's own.
func (op check) weights(w *Mat, g Graph) {
	if w != nil {
		op.column("w", w, g.Edges(), "one value per edge")
	}
}

// apart checks that dst does not begin where in does. Views of other columns of
// the same rows (the heads of an attention layer) are allowed.
func (op check) apart(dst *Mat, name string, in *Mat) {
	if in == nil || dst.Rows == 0 || dst.Cols == 0 || in.Rows == 0 || in.Cols == 0 {
		return
	}
	if dst.Host != nil && in.Host != nil && unsafe.SliceData(dst.Host) == unsafe.SliceData(in.Host) ||
		dst.Addr != 0 && dst.Addr == in.Addr {
		op.failf("dst (%d x %d) is the memory of %s (%d x %d)", dst.Rows, dst.Cols, name, in.Rows, in.Cols)
	}
}

// epilogue checks what is fused into an output of rows x cols; nil is none.
func (op check) epilogue(ep *Epilogue, rows, cols int) {
	if ep == nil {
		return
	}
	if ep.Bias != nil {
		op.shape("bias", ep.Bias, 1, cols, "1 x columns of dst")
	}
	if ep.Act > Tanh {
		op.failf("activation %d, want 0 to %d", ep.Act, Tanh)
	}
	op.dropout(ep.Drop, rows, cols)
}

// dropout checks a mask over rows x cols.
func (op check) dropout(d Dropout, rows, cols int) {
	if !(d.P >= 0 && d.P < 1) {
		op.failf("dropout probability %v, want 0 <= P < 1", d.P)
	}
	if d.IDs != nil && len(d.IDs) != rows {
		op.failf("dropout has %d row ids, want %d (rows of dst)", len(d.IDs), rows)
	}
	if d.P > 0 && (d.IDs == nil && rows > math.MaxInt32 || cols > math.MaxInt32) {
		op.failf("dropout over %d x %d: row ids and columns are 32-bit", rows, cols)
	}
}

// ids checks that row numbers lie in [0,n).
func (op check) ids(ids []int32, n int) {
	for i, id := range ids {
		if id < 0 || int(id) >= n {
			op.failf("ids[%d] is %d, want a row in [0,%d)", i, id, n)
		}
	}
}
