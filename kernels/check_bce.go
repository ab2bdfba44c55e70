package kernels

// CheckSigmoidBCE panics with a *ShapeError unless SigmoidBCE can run. It reads
// the classes of all rows whose mask is not below 0.
func CheckSigmoidBCE(grad *Mat, loss []float64, logits *Mat, targets *CSR, mask []int32, posW *Mat, scale float32) {
	op := check("SigmoidBCE")
	op.mat("logits", logits)
	if grad != nil {
		op.shape("grad", grad, logits.Rows, logits.Cols, "as logits")
	}
	if len(loss) < 1 {
		op.failf("loss has no element to set")
	}
	if len(mask) != logits.Rows {
		op.failf("%d mask values, want %d (rows of logits)", len(mask), logits.Rows)
	}
	if posW != nil {
		op.shape("posW", posW, 1, logits.Cols, "1 x classes")
	}
	if targets == nil {
		op.failf("targets is nil")
	}
	if len(targets.RowPtr) != logits.Rows+1 || targets.Cols != logits.Cols {
		op.failf("targets has %d row offsets and %d columns, want %d and %d (logits)", len(targets.RowPtr), targets.Cols, logits.Rows+1, logits.Cols)
	}
	for r, m := range mask {
		if m < 0 {
			continue
		}
		lo, hi := targets.RowPtr[r], targets.RowPtr[r+1]
		if lo < 0 || hi < lo || hi > int64(len(targets.Col)) {
			op.failf("the targets of row %d are entries %d to %d of %d", r, lo, hi, len(targets.Col))
		}
		before := int32(0)
		for _, c := range targets.Col[lo:hi] {
			if c < before || int(c) >= logits.Cols {
				op.failf("row %d lists class %d after %d, want them to rise and to be below %d", r, c, before, logits.Cols)
			}
			before = c
		}
	}
}
