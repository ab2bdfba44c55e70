package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func dropoutCases() []Case {
	return []Case{{"Dropout/bits", dropoutBits}, {"Dropout/statistics", dropoutStatistics}}
}

// mask runs Forward over ones and returns which values survived.
func (l *lab) mask(rows, cols int, d kernels.Dropout) func(r, c int) bool {
	t := l.trial(layouts[1], "the mask of P %v, key %#x", d.P, d.Key)
	x := t.in("x", rows, cols, func(int, int) float32 { return 1 })
	dst := t.result("dst", rows, cols)
	hold(t, "IDs", d.IDs)
	t.run(func(s kernels.Stream) {
		s.Forward(dst.view, x.view, &kernels.Epilogue{Drop: d}, kernels.Span{Hi: rows})
	})
	return func(r, c int) bool { return dst.got[dst.at(r, c)] != 0 }
}

// dropoutBits: the mask is DropKeep, bit for bit, for every kind of id, key and
// probability, up to columns that no vector divides.
func dropoutBits(l *lab) {
	const rows, cols = 9, 1433
	ids := []int32{0, -1, math.MaxInt32, math.MinInt32, 5, 5, 1 << 30, 3, 2}
	for _, p := range []float32{1e-9, 0.1, 0.5, 0.6, 0.999, math.Nextafter32(1, 0)} {
		for _, key := range []uint64{0, math.MaxUint64, kernels.DropKey(l.seed, 3, 1)} {
			for _, with := range [][]int32{nil, ids} {
				d := kernels.Dropout{P: p, Key: key, IDs: with}
				kept := l.mask(rows, cols, d)
				wrong := 0
				for r := range rows {
					for c := range cols {
						if kept(r, c) == drops(d, r, c) {
							if wrong++; wrong == 1 {
								l.failf("the mask of P %v, key %#x, ids %v: kept[%d,%d] is %v, want DropKeep's %v", p, key, with != nil, r, c, kept(r, c), !drops(d, r, c))
							}
						}
					}
				}
				l.release()
			}
		}
	}
}

// dropoutStatistics: the share of dropped values, and of neighbours in a row, a
// column and another epoch that are dropped together, is that of independent
// draws, within 5 standard deviations.
func dropoutStatistics(l *lab) {
	const rows, cols = 300, 301
	const n = rows * cols
	for _, p := range []float64{0.1, 0.5, 0.8} {
		d := kernels.Dropout{P: float32(p), Key: kernels.DropKey(l.seed, 1, 0)}
		kept := l.mask(rows, cols, d)
		d.Key = kernels.DropKey(l.seed, 2, 0)
		next := l.mask(rows, cols, d)
		var alone, right, below, later int
		for r := range rows {
			for c := range cols {
				if kept(r, c) {
					continue
				}
				alone++
				if !kept(r, (c+1)%cols) {
					right++
				}
				if !kept((r+1)%rows, c) {
					below++
				}
				if !next(r, c) {
					later++
				}
			}
		}
		for _, s := range []struct {
			name  string
			count int
			p     float64
		}{{"values", alone, p}, {"neighbours in a row", right, p * p}, {"neighbours in a column", below, p * p}, {"values of two epochs", later, p * p}} {
			// Pairs overlap, which at most doubles and a half the variance.
			sigma := math.Sqrt(2.5 * n * s.p * (1 - s.p))
			if off := math.Abs(float64(s.count) - n*s.p); off > 5*sigma {
				l.failf("P %v drops %d of %d %s, want %.0f ± %.0f", p, s.count, n, s.name, n*s.p, 5*sigma)
			}
		}
		l.release()
	}
}
