package kernels

// CheckAddRows panics with a *ShapeError unless AddRows can run. It reads ids.
func CheckAddRows(dst, src *Mat, ids []int32) {
	op := check("AddRows")
	op.mat("dst", dst)
	op.shape("src", src, len(ids), dst.Cols, "ids x columns of dst")
	op.apart(dst, "src", src)
	for i, id := range ids {
		if int(id) >= dst.Rows {
			op.failf("ids[%d] is %d, want a row below %d, or below 0 for none", i, id, dst.Rows)
		}
	}
}

// CheckAddScaled panics with a *ShapeError unless AddScaled can run.
func CheckAddScaled(dst, a, b *Mat, c float32, s *Mat) {
	op := check("AddScaled")
	op.mat("dst", dst)
	op.shape("a", a, dst.Rows, dst.Cols, "as dst")
	op.shape("b", b, dst.Rows, dst.Cols, "as dst")
	if s != nil {
		op.shape("s", s, 1, 1, "a single value")
		op.apart(dst, "s", s)
	}
}

// CheckDot panics with a *ShapeError unless Dot can run.
func CheckDot(dst, a, b *Mat) {
	op := check("Dot")
	op.shape("dst", dst, 1, 1, "a single value")
	op.pair(dst, a, b)
}

// CheckColDot panics with a *ShapeError unless ColDot can run.
func CheckColDot(dst, a, b *Mat) {
	op := check("ColDot")
	op.mat("a", a)
	op.shape("dst", dst, 1, a.Cols, "1 x columns of a")
	op.pair(dst, a, b)
}

// pair checks two inputs of one shape, apart from dst.
func (op check) pair(dst, a, b *Mat) {
	op.mat("a", a)
	op.shape("b", b, a.Rows, a.Cols, "as a")
	op.apart(dst, "a", a)
	op.apart(dst, "b", b)
}
