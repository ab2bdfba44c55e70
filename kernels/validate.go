package kernels

import "fmt"

// Validate says what is wrong with g: offsets that do not start at 0, fall, or
// do not end at the number of entries; a column outside [0,Cols) or before the
// one to its left; values that are not one per entry. Devices call it in Load,
// so that no kernel ever reads through a bad index.
func (g *CSR) Validate() error {
	if g == nil || len(g.RowPtr) == 0 {
		return fmt.Errorf("check graph: no row offsets; n rows have n+1 of them")
	}
	if g.Cols < 0 {
		return fmt.Errorf("check graph: %d columns", g.Cols)
	}
	if g.RowPtr[0] != 0 {
		return fmt.Errorf("check graph: row 0 starts at entry %d, want 0", g.RowPtr[0])
	}
	if last := g.RowPtr[len(g.RowPtr)-1]; last != int64(len(g.Col)) {
		return fmt.Errorf("check graph: the rows end at entry %d, but there are %d columns", last, len(g.Col))
	}
	if g.Val != nil && len(g.Val) != len(g.Col) {
		return fmt.Errorf("check graph: %d values for %d entries", len(g.Val), len(g.Col))
	}
	for v := range g.Rows() {
		lo, hi := g.RowPtr[v], g.RowPtr[v+1]
		if hi < lo {
			return fmt.Errorf("check graph: row %d ends at entry %d, before its start at %d", v, hi, lo)
		}
		if hi > int64(len(g.Col)) {
			return fmt.Errorf("check graph: row %d ends at entry %d of %d", v, hi, len(g.Col))
		}
	}
	return g.Spread(Span{Hi: g.Rows()}, func(s Span) error {
		for v := s.Lo; v < s.Hi; v++ {
			if err := g.validateRow(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// validateRow is Validate for the columns of a row.
func (g *CSR) validateRow(v int) error {
	before := int32(0)
	for i, c := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
		if c < 0 || int(c) >= g.Cols {
			return fmt.Errorf("check graph: entry %d of row %d is column %d, want one in [0,%d)", i, v, c, g.Cols)
		}
		if c < before {
			return fmt.Errorf("check graph: entry %d of row %d is column %d, after column %d; sort each row", i, v, c, before)
		}
		before = c
	}
	return nil
}
