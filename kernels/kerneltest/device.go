package kerneltest

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"dorylus/kernels"
)

// widths are those of rows: below, at and above vectors of 8 and 16, and two
// widths of real data.
var widths = []int{1, 7, 8, 9, 16, 41, 602}

// byWidth is one case per width.
func byWidth(name string, run func(l *lab, width int)) []Case {
	var cases []Case
	for _, w := range widths {
		cases = append(cases, Case{fmt.Sprintf("%s/width=%d", name, w), func(l *lab) { run(l, w) }})
	}
	return cases
}

func deviceCases() []Case {
	return []Case{
		{"Device/alloc", alloc},
		{"Device/load", load},
		{"Device/leaks", leaks},
	}
}

// alloc: matrices are zero, padded as PadCols says, and do not overlap; freed
// memory that comes back is zero again.
func alloc(l *lab) {
	for range 3 {
		for _, size := range [][2]int{{3, 1}, {1, 1}, {5, 41}, {2, 602}, {0, 4}, {4, 0}, {0, 0}} {
			rows, cols := size[0], size[1]
			m := l.alloc(rows, cols)
			if m.Rows != rows || m.Cols != cols || m.Stride != kernels.PadCols(cols) {
				l.failf("Alloc(%d, %d) is %d x %d with stride %d, want stride %d", rows, cols, m.Rows, m.Cols, m.Stride, kernels.PadCols(cols))
			}
			if rows*cols == 0 {
				continue
			}
			got := make([]float32, rows*cols)
			l.s.Get(got, m)
			if err := l.s.Wait(); err != nil {
				l.failf("Get: %v", err)
			}
			for i, v := range got {
				if math.Float32bits(v) != 0 {
					l.failf("Alloc(%d, %d): value %d is %v, want 0", rows, cols, i, v)
				}
				got[i] = poison
			}
			if m.Host != nil && uintptr(unsafe.Pointer(&m.Host[0]))%64 != 0 {
				l.failf("Alloc(%d, %d) does not start on a 64-byte boundary", rows, cols)
			}
			l.s.Put(m, got)
			if err := l.s.Wait(); err != nil {
				l.failf("Put: %v", err)
			}
		}
		l.release()
	}
	for _, size := range [][2]int{{-1, 3}, {3, -1}, {math.MaxInt / 2, 3}, {math.MaxInt, math.MaxInt}} {
		if m, err := l.dev.Alloc(size[0], size[1]); err == nil {
			l.dev.Free(m)
			l.failf("Alloc(%d, %d) gave no error", size[0], size[1])
		}
	}
	l.dev.Free(nil)
}

// load: a graph's sizes come back; a bad one is an error, never loaded.
func load(l *lab) {
	good := toy(l.rng, 20, 11, true)
	g := l.load(good)
	if g.Rows() != 20 || g.Cols() != 11 || g.Edges() != len(good.Col) {
		l.failf("a graph of 20 x 11 with %d edges came back as %d x %d with %d", len(good.Col), g.Rows(), g.Cols(), g.Edges())
	}
	l.load(&kernels.CSR{RowPtr: []int64{0}})
	l.load(&kernels.CSR{Cols: 3, RowPtr: []int64{0, 0, 0}})
	bad := map[string]*kernels.CSR{
		"nil":                  nil,
		"no offsets":           {Cols: 3},
		"first offset 1":       {Cols: 3, RowPtr: []int64{1, 1}, Col: []int32{0}},
		"falling offsets":      {Cols: 3, RowPtr: []int64{0, 2, 1, 2}, Col: []int32{0, 1}},
		"offset past the end":  {Cols: 3, RowPtr: []int64{0, 5, 2}, Col: []int32{0, 1}},
		"column 3 of 3":        {Cols: 3, RowPtr: []int64{0, 1}, Col: []int32{3}},
		"column -1":            {Cols: 3, RowPtr: []int64{0, 1}, Col: []int32{-1}},
		"columns out of order": {Cols: 3, RowPtr: []int64{0, 2}, Col: []int32{2, 0}},
		"too few values":       {Cols: 3, RowPtr: []int64{0, 2}, Col: []int32{0, 1}, Val: []float32{1}},
		"too few columns":      {Cols: 3, RowPtr: []int64{0, 2}, Col: []int32{0}},
	}
	for name, c := range bad {
		if g, err := l.dev.Load(c); err == nil {
			l.dev.Unload(g)
			l.failf("Load of a graph with %s gave no error", name)
		}
	}
}

// leaks: Close with things in hand names them and releases nothing; once they are
// given back it is silent. (Every other case ends with a Close that must be.)
func leaks(l *lab) {
	dev, err := l.open()
	if err != nil {
		l.failf("open a second device: %v", err)
		return
	}
	m, err := dev.Alloc(3, 5)
	if err != nil {
		l.failf("Alloc: %v", err)
		return
	}
	g, err := dev.Load(&kernels.CSR{Cols: 2, RowPtr: []int64{0, 1}, Col: []int32{1}})
	if err != nil {
		l.failf("Load: %v", err)
		return
	}
	s, err := dev.NewStream()
	if err != nil {
		l.failf("NewStream: %v", err)
		return
	}
	if err := dev.Close(); err == nil {
		l.failf("Close with a matrix, a graph and a stream in hand reported nothing")
	} else {
		text := strings.ToLower(err.Error())
		for _, what := range []string{"matri", "graph", "stream"} {
			if !strings.Contains(text, what) {
				l.failf("Close with a matrix, a graph and a stream in hand does not name the %s: %v", what, err)
			}
		}
	}
	if err := s.Close(); err != nil {
		l.failf("close the stream: %v", err)
	}
	dev.Free(m)
	dev.Unload(g)
	if err := dev.Close(); err != nil {
		l.failf("Close after everything was given back: %v", err)
	}
}
