package kernels

// Peer is an optional interface of a Device: one that takes rows straight from the memory
// of another, as GPUs of one machine do that are wired to each other.
type Peer interface {
	// Reaches says whether CopyFrom takes matrices of src.
	Reaches(src Device) bool
	// CopyFrom sets dst = from, of the same shape, where dst is a matrix of this Device and
	// from one of src. It returns when that is done: what reads dst may be queued then, and
	// from may be overwritten. What wrote from, and what still read dst, must be done before
	// (Stream.Wait). Several goroutines may call it at once. Other shapes panic as those of
	// an op do.
	CopyFrom(dst *Mat, src Device, from *Mat) error
}

// CheckCopyFrom panics with a *ShapeError unless Peer.CopyFrom can run.
func CheckCopyFrom(dst, from *Mat) {
	op := check("CopyFrom")
	op.mat("dst", dst)
	op.shape("from", from, dst.Rows, dst.Cols, "as dst")
}

// Unpadded is the first rows*cols values of m, one column as Alloc gives it, as a matrix
// without padding.
func Unpadded(m *Mat, rows, cols int) *Mat {
	if m.Stride != 1 || m.Cols != 1 || rows < 0 || cols < 0 || int64(rows)*int64(cols) > int64(m.Rows) {
		panic(shapeError("Unpadded", "%d x %d in a matrix of %d x %d, %d apart", rows, cols, m.Rows, m.Cols, m.Stride))
	}
	u := &Mat{Rows: rows, Cols: cols, Stride: cols, Addr: m.Addr}
	if m.Host != nil {
		u.Host = m.Host[:rows*cols]
	}
	return u
}
