package testkit

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

// Far names the value of got that is furthest from want's, "" if none is further than tol
// times want's largest.
func Far(want, got *kernels.Mat, tol float64) string {
	if want.Rows != got.Rows || want.Cols != got.Cols {
		return fmt.Sprintf(" is %d x %d, want %d x %d", got.Rows, got.Cols, want.Rows, want.Cols)
	}
	worst, largest, where := 0.0, 0.0, ""
	for r := range want.Rows {
		for c, x := range want.Row(r) {
			y := got.Row(r)[c]
			largest = max(largest, math.Abs(float64(x)))
			if d := math.Abs(float64(x) - float64(y)); d > worst || d != d {
				worst, where = d, fmt.Sprintf("[%d,%d] is %v, want %v", r, c, y, x)
			}
		}
	}
	if worst <= tol*largest {
		return ""
	}
	return fmt.Sprintf("%s: off by %.3g of %.3g", where, worst, largest)
}
