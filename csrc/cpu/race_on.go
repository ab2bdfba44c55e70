//go:build race && cgo && amd64

package native

import (
	"runtime"
	"unsafe"
)

// The race detector does not see what C does. These functions tell it, row by
// row, so that a kernel counts as reading and writing exactly its operands.

func raceSpan(p unsafe.Pointer, bytes int, write bool) {
	switch {
	case bytes <= 0 || p == nil:
	case write:
		runtime.RaceWriteRange(p, bytes)
	default:
		runtime.RaceReadRange(p, bytes)
	}
}

func raceRow(x []float32, at, f int, write bool) {
	if x != nil && f > 0 {
		raceSpan(unsafe.Pointer(&x[at]), 4*f, write)
	}
}

func raceRead(x []float32, ld, f, lo, hi int) {
	for v := lo; v < hi; v++ {
		raceRow(x, v*ld, f, false)
	}
}

func raceWrite(x []float32, ld, f, lo, hi int) {
	for v := lo; v < hi; v++ {
		raceRow(x, v*ld, f, true)
	}
}

func raceRows(x []float32, ld, f int, ids []int32, write bool) {
	for _, v := range ids {
		raceRow(x, int(v)*ld, f, write)
	}
}

// raceSome is a write of the rows that ids names; those below 0 name none.
func raceSome(x []float32, ld, f int, ids []int32) {
	for _, v := range ids {
		if v >= 0 {
			raceRow(x, int(v)*ld, f, true)
		}
	}
}

func raceEdges(w []float32, rowPtr []int64, lo, hi int, write bool) {
	if first, last := int(rowPtr[lo]), int(rowPtr[hi]); first < last {
		raceRow(w, first, last-first, write)
	}
}

func raceSources(rowPtr []int64, col []int32, x []float32, ldx, f, lo, hi int) {
	raceRows(x, ldx, f, col[rowPtr[lo]:rowPtr[hi]], false)
}

func raceHalf(x []uint16, n int, write bool) {
	raceSpan(unsafe.Pointer(unsafe.SliceData(x)), 2*n, write)
}

func raceGather(g *Gather) {
	raceSources(g.RowPtr, g.Col, g.X, g.LDX, g.Cols, g.Lo, g.Hi)
	raceSources(g.RowPtr, g.Col, g.CS, 1, 1, g.Lo, g.Hi)
	raceEdges(g.W, g.RowPtr, g.Lo, g.Hi, false)
	raceRead(g.RS, 1, 1, g.Lo, g.Hi)
	if g.SelfOn {
		raceRead(g.SelfW, 1, 1, g.Lo, g.Hi)
		for v := g.Lo; v < g.Hi; v++ {
			u := v
			if g.SelfCol != nil {
				u = int(g.SelfCol[v])
			}
			if u >= 0 {
				raceRow(g.X, u*g.LDX, g.Cols, false)
				raceRow(g.CS, u, 1, false)
			}
		}
	}
	if g.Ep != nil {
		raceRow(g.Ep.Bias, 0, g.Cols, false)
	}
	raceWrite(g.Y, g.LDY, g.Cols, g.Lo, g.Hi)
}

// raceAttend: turned, lse and dot belong to the rows that are gathered.
func raceAttend(g *Attend, turned bool) {
	wide := g.Heads * g.D
	gathered := func(x []float32, ld, f int) {
		raceSources(g.RowPtr, g.Col, x, ld, f, g.Lo, g.Hi)
		for v := g.Lo; g.SelfOn && v < g.Hi; v++ {
			u := v
			if g.SelfCol != nil {
				u = int(g.SelfCol[v])
			}
			if u >= 0 {
				raceRow(x, u*ld, f, false)
			}
		}
	}
	gathered(g.X, g.LDX, wide)
	gathered(g.Far, g.LDFar, g.Heads)
	if turned {
		gathered(g.LSE, g.LDLSE, g.Heads)
		gathered(g.Dot, g.LDDot, g.Heads)
	} else {
		raceRead(g.LSE, g.LDLSE, g.Heads, g.Lo, g.Hi)
	}
	raceEdges(g.W, g.RowPtr, g.Lo, g.Hi, false)
	if g.SelfOn {
		raceRead(g.SelfW, 1, 1, g.Lo, g.Hi)
	}
	raceRead(g.Near, g.LDNear, g.Heads, g.Lo, g.Hi)
	raceRead(g.Own, g.LDOwn, wide, g.Lo, g.Hi)
	if g.Ep != nil {
		raceRow(g.Ep.Bias, 0, wide, false)
	}
	raceWrite(g.Y, g.LDY, wide, g.Lo, g.Hi)
	raceWrite(g.Out, g.LDOut, g.Heads, g.Lo, g.Hi)
	raceWrite(g.Out2, g.LDOut2, g.Heads, g.Lo, g.Hi)
}
