package kerneltest

import (
	"math"
	"math/rand/v2"
	"slices"

	"dorylus/kernels"
)

// Devices that cut rows of many edges into chunks do so at numbers of edges of their
// own, powers of two or near. The degrees here lie on both sides of those up to 512
// edges and up to 4,096 that kernels/cuda has, and between such rows are short ones, so
// that spans cut lists of long rows everywhere.
var (
	longDegrees = []int{3, 512, 513, 0, 769, 1025, 40, 300, 600, 1}
	hugeDegrees = []int{5, 4095, 4096, 0, 33, 6145, 32, 31, 4097, 2}
)

// longSpans are all rows of such graphs, and parts that begin or end between long rows.
var longSpans = []kernels.Span{{Hi: 10}, {Lo: 2, Hi: 6}, {Lo: 5, Hi: 10}, {Lo: 3, Hi: 4}}

func longCases() []Case {
	return []Case{
		{"SpMM/long", spmmLong}, {"SpMMT/long", spmmtLong},
		{"GAT/long", gatLong}, {"GAT/spans/long", gatSpansLong}, {"GAT/weightless", gatWeightless},
		{"SpMMMax/long", spmmMaxLong}, {"SpMMMaxBack/long", spmmMaxBackLong},
	}
}

// uneven is a graph whose row v has degrees[v] edges. Edges 256, 512 and so on of a row
// are duplicates of those before them, so that no device can cut a row into runs of
// that many without parting duplicates.
func uneven(rng *rand.Rand, cols int, weighted bool, degrees []int) *kernels.CSR {
	g := &kernels.CSR{Cols: cols, RowPtr: make([]int64, 1, len(degrees)+1)}
	for _, n := range degrees {
		row := make([]int32, n)
		for i := range row {
			row[i] = int32(rng.IntN(cols))
		}
		slices.Sort(row)
		for i := 256; i < n; i += 256 {
			row[i] = row[i-1]
		}
		g.Col = append(g.Col, row...)
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	if weighted {
		g.Val = make([]float32, len(g.Col))
		for e := range g.Val {
			g.Val[e] = float32(rng.IntN(7) - 3)
		}
	}
	return g
}

// longWidths are widths of the forms that a device may have for rows of many edges.
var longWidths = []struct{ width, lay int }{{9, 0}, {41, 0}, {70, 0}, {3, 1}, {41, 2}}

// spmmLong: sums over rows of thousands of edges, on exact operands and random ones.
func spmmLong(l *lab) {
	ep := &kernels.Epilogue{Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, Key: 11}}
	for i, w := range longWidths {
		p := gather{rows: len(hugeDegrees), cols: 60, width: w.width, degrees: hugeDegrees, span: longSpans[i%3],
			val: i == 1, w: i == 2, rs: i != 1, cs: i != 2, self: i > 0, selfCol: i > 0, exact: i%2 == 0, ep: ep, bias: i == 0}
		p.try(l, layouts[w.lay])
	}
	l.inPieces(layouts[0], gather{rows: len(hugeDegrees), cols: 60, width: 9, degrees: hugeDegrees, rs: true, self: true, selfCol: true, ep: ep})
}

// spmmtLong: thousands of rows scatter to one, each twice.
func spmmtLong(l *lab) {
	const rows = 2100
	for i, w := range longWidths {
		csr := &kernels.CSR{Cols: 5, RowPtr: []int64{0}}
		for v := range rows {
			csr.Col = append(csr.Col, 0, 0, 1, 1, int32(2+v%3))
			csr.RowPtr = append(csr.RowPtr, int64(len(csr.Col)))
		}
		l.scatterOf(layouts[w.lay], csr, w.width, kernels.Span{Lo: 7 * i, Hi: rows - 300*i}, i == 1, i%2 == 0, random(l.rng, i%2 == 0))
	}
}

// gatLong: attention over rows of hundreds of edges, with scores that rise within a
// row, special values, and spans that cut it all.
func gatLong(l *lab) {
	rising := func(r, _ int) float32 { return float32(r) }
	bad := func(v float64) func(r, c int) float32 {
		return func(r, c int) float32 {
			if r == 7 && c%2 == 0 {
				return float32(v)
			}
			return l.rng.Float32()
		}
	}
	for i, p := range []attend{
		{heads: 2, d: 8, val: true, self: true, selfCol: true, p: 0.5, ids: true, ep: &kernels.Epilogue{Act: kernels.ELU, Drop: kernels.Dropout{P: 0.4, Key: 9}}, bias: true},
		{heads: 3, d: 5, selfCol: true, self: true, selfW: true, scores: rising},
		{heads: 1, d: 41, p: 0.3},
		{heads: 2, d: 4, val: true, scores: bad(math.Inf(-1))},
		{heads: 2, d: 4, scores: bad(math.Inf(1))},
		{heads: 2, d: 4, p: 0.5, fill: bad(math.NaN())},
	} {
		p.rows, p.cols, p.degrees, p.slope, p.span = len(longDegrees), 19, longDegrees, 0.2, longSpans[i%len(longSpans)]
		p.forwardTry(l, layouts[i%len(layouts)])
		if i < 3 {
			p.span = longSpans[(i+1)%len(longSpans)]
			p.backwardTry(l, layouts[i%len(layouts)])
		}
	}
	// A head whose scores are all -Inf.
	p := attend{rows: len(longDegrees), cols: 19, heads: 2, d: 4, degrees: longDegrees, slope: 0.2, span: longSpans[0], scores: func(r, c int) float32 {
		if c == 1 {
			return float32(math.Inf(-1))
		}
		return l.rng.Float32()
	}}
	p.forwardTry(l, layouts[0])
}

// gatSpansLong: bits do not depend on the span.
func gatSpansLong(l *lab) {
	for i, lay := range layouts[:2] {
		gatPieces(l, lay, attend{rows: len(longDegrees), cols: 19, heads: 2, d: 5 + 3*i, degrees: longDegrees, val: i == 1, self: true, selfCol: true,
			p: 0.4, slope: 0.2, ep: &kernels.Epilogue{Act: kernels.ELU, Drop: kernels.Dropout{P: 0.4, Key: 9}}})
	}
}

// gatWeightless: what has no edges but those of weight 0 has an lse of -Inf; neither
// that nor NaN in its rows reaches the other end of such an edge.
func gatWeightless(l *lab) {
	for i, degrees := range [][]int{{4, 30, 7, 0, 60, 1}, longDegrees} {
		p := attend{rows: len(degrees), cols: 19, heads: 2, d: 4 + i, degrees: degrees, val: true, slope: 0.2, p: 0.3 * float32(i), span: kernels.Span{Hi: len(degrees)},
			mute: func(other int) bool { return other%3 == 1 }}
		p.forwardTry(l, layouts[i])
		p.backwardTry(l, layouts[i])
		p.mute = func(int) bool { return true } // no term at all, in rows of many edges too
		p.forwardTry(l, layouts[i])
		p.backwardTry(l, layouts[i])
	}
}

// spmmMaxLong: maxima with ties and NaN, and which edge they come from, over hundreds.
func spmmMaxLong(l *lab) {
	for i, width := range []int{7, 41, 140} {
		for k, span := range longSpans {
			fill := random(l.rng, k%2 == 0)
			if k == 2 {
				fill = func(int, int) float32 {
					return []float32{float32(math.NaN()), 1, 2, float32(math.Inf(-1))}[l.rng.IntN(4)]
				}
			}
			l.maximumOf(layouts[(i+k)%len(layouts)], uneven(l.rng, 25, k != 1, longDegrees), width, span, k != 3, fill)
		}
	}
}

// spmmMaxBackLong: a duplicate counts once, also where a row is cut between it and its
// twin. NaN of a gradient reaches the row that it belongs to, and no other.
func spmmMaxBackLong(l *lab) {
	const cols = 30
	for i, lay := range layouts {
		for k, span := range longSpans {
			l.maximumBack(lay, uneven(l.rng, cols, i == 1, longDegrees), []int{7, 41, 140}[i], span, i == 0, func(r, c int) float32 {
				if k == 1 && r == 11 && c%3 == 0 {
					return float32(math.NaN())
				}
				return random(l.rng, i == 0)(r, c)
			})
		}
	}
}
