package kernels

// Align is the row padding of matrices that a Device allocates, in float32
// values: rows start on 64-byte boundaries, so that no row shares a cache line
// with another.
const Align = 16

// Mat is a row-major float32 matrix in one Device's memory. The values between
// Cols and Stride are padding: ops neither read nor write them.
type Mat struct {
	Rows, Cols, Stride int
	// Host holds at least (Rows-1)*Stride+Cols values when the memory is
	// host-addressable, and is nil otherwise.
	Host []float32
	// Addr is the device address; 0 for host memory.
	Addr uintptr
}

// FromSlice is a host matrix over data, rows cols values apart. It panics if
// data is too short.
func FromSlice(rows, cols int, data []float32) *Mat {
	if need := extent(rows, cols, cols); rows < 0 || cols < 0 || need < 0 || int64(len(data)) < need {
		panic(shapeError("FromSlice", "%d values do not hold %d x %d", len(data), rows, cols))
	}
	return &Mat{Rows: rows, Cols: cols, Stride: cols, Host: data}
}

// PadCols is the stride with which a Device stores rows of cols values. A single
// column is not padded: scales and edge weights are columns with stride 1.
func PadCols(cols int) int {
	if cols == 1 {
		return 1
	}
	return (cols + Align - 1) / Align * Align
}

// Row is row i of a host matrix, Cols values.
func (m *Mat) Row(i int) []float32 {
	return m.Host[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

// Sub is the matrix of rows [s.Lo,s.Hi) of m, sharing its memory.
func (m *Mat) Sub(s Span) *Mat {
	if s.Lo < 0 || s.Hi < s.Lo || s.Hi > m.Rows {
		panic(shapeError("Sub", "rows [%d,%d) of a matrix of %d rows", s.Lo, s.Hi, m.Rows))
	}
	sub := &Mat{Rows: s.Len(), Cols: m.Cols, Stride: m.Stride}
	if m.Host != nil {
		if s.Len() > 0 {
			sub.Host = m.Host[s.Lo*m.Stride : (s.Hi-1)*m.Stride+m.Cols]
		} else {
			sub.Host = m.Host[:0]
		}
	}
	if m.Addr != 0 {
		sub.Addr = m.Addr + uintptr(s.Lo*m.Stride)*4
	}
	return sub
}

// Columns is the matrix of columns [lo,hi) of m, sharing its memory.
func (m *Mat) Columns(lo, hi int) *Mat {
	if lo < 0 || hi < lo || hi > m.Cols {
		panic(shapeError("Columns", "columns [%d,%d) of a matrix of %d columns", lo, hi, m.Cols))
	}
	sub := &Mat{Rows: m.Rows, Cols: hi - lo, Stride: m.Stride}
	if m.Host != nil {
		sub.Host = m.Host[:0]
		if m.Rows > 0 && hi > lo {
			sub.Host = m.Host[lo : (m.Rows-1)*m.Stride+hi]
		}
	}
	if m.Addr != 0 {
		sub.Addr = m.Addr + uintptr(lo)*4
	}
	return sub
}

// Span is the half-open row range [Lo,Hi).
type Span struct{ Lo, Hi int }

// Len is the number of rows in s.
func (s Span) Len() int { return s.Hi - s.Lo }

// CSR lists each row's in-edges (or each row's non-zero features), in host
// memory. Within a row Col ascends; a column may repeat. Val == nil: every edge
// weighs 1. Edge e is the index into Col and Val.
type CSR struct {
	Cols   int     // number of columns: every Col is in [0,Cols)
	RowPtr []int64 // rows+1 offsets into Col and Val
	Col    []int32
	Val    []float32
}

// Rows is the number of rows of g.
func (g *CSR) Rows() int { return len(g.RowPtr) - 1 }

// Edges is the number of entries of g.
func (g *CSR) Edges() int { return int(g.RowPtr[len(g.RowPtr)-1]) }
