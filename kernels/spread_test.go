package kernels_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"dorylus/kernels"
)

// ladder is a graph without columns whose rows have so many edges each.
func ladder(degrees ...int64) *kernels.CSR {
	g := &kernels.CSR{RowPtr: []int64{0}}
	for _, d := range degrees {
		g.RowPtr = append(g.RowPtr, g.RowPtr[len(g.RowPtr)-1]+d)
	}
	return g
}

func TestSpreadCoversEachRowOnce(t *testing.T) {
	even := make([]int64, 5000)
	for i := range even {
		even[i] = int64(i % 700)
	}
	for name, g := range map[string]*kernels.CSR{
		"no rows": ladder(), "one row": ladder(5), "no edges": ladder(0, 0, 0), "even": ladder(even...),
		"a giant": ladder(1, 1<<22, 0, 0, 7), "giants": ladder(1<<20, 1<<20, 1<<20),
	} {
		for _, rows := range []kernels.Span{{Hi: g.Rows()}, {Lo: g.Rows() / 3, Hi: g.Rows() - g.Rows()/4}} {
			times := make([]atomic.Int32, g.Rows())
			if err := g.Spread(rows, func(s kernels.Span) error {
				for v := s.Lo; v < s.Hi; v++ {
					times[v].Add(1)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for v := range times {
				want := int32(0)
				if v >= rows.Lo && v < rows.Hi {
					want = 1
				}
				if got := times[v].Load(); got != want {
					t.Fatalf("%s, rows %v: row %d came %d times, want %d", name, rows, v, got, want)
				}
			}
		}
	}
}

func TestSpreadReturnsTheFirstError(t *testing.T) {
	degrees := make([]int64, 400)
	for i := range degrees {
		degrees[i] = 1 << 15
	}
	g := ladder(degrees...)
	for range 20 {
		err := g.Spread(kernels.Span{Hi: g.Rows()}, func(s kernels.Span) error {
			for v := s.Lo; v < s.Hi; v++ {
				if v >= 100 {
					return fmt.Errorf("row %d", v)
				}
			}
			return nil
		})
		if err == nil || err.Error() != "row 100" {
			t.Fatalf("the error is %v, want that of row 100", err)
		}
	}
}
