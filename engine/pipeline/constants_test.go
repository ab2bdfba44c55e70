package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// wideStore has 150 features for each vertex, dense or every seventh of them.
func wideStore(t *testing.T, sparse bool) *store.Store {
	t.Helper()
	const cols = 150
	r := toyGraph{directed: true, weighted: true}.raw(1)
	rng := rand.New(rand.NewPCG(4, 4))
	r.Dense, r.Sparse = nil, nil
	if !sparse {
		r.Dense = kernels.FromSlice(r.N, cols, make([]float32, r.N*cols))
		for i := range r.Dense.Host {
			r.Dense.Host[i] = float32(rng.NormFloat64())
		}
		return build(t, r, "lpa")
	}
	r.Sparse = &kernels.CSR{Cols: cols, RowPtr: []int64{0}}
	for range r.N {
		for c := rng.IntN(7); c < cols; c += 7 {
			r.Sparse.Col, r.Sparse.Val = append(r.Sparse.Col, int32(c)), append(r.Sparse.Val, rng.Float32()-0.5)
		}
		r.Sparse.RowPtr = append(r.Sparse.RowPtr, int64(len(r.Sparse.Col)))
	}
	return build(t, r, "lpa")
}

// Constants that are made for some rows, a few columns at a time, have the bits of those
// of all rows: from all vertices or few, that follow each other or not.
func TestConstantsByColumns(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		st := wideStore(t, sparse)
		n := st.Meta.Vertices
		for name, set := range map[string]func(*engine.Config){
			"gcn": func(*engine.Config) {}, "sgc": func(c *engine.Config) { c.Hops = 3 }, "gin": func(*engine.Config) {},
			"sage": func(*engine.Config) {}, "sage max": func(c *engine.Config) { c.Aggregator = "max" },
		} {
			model, _, _ := strings.Cut(name, " ")
			c := engine.DefaultConfig(model)
			c.InputDropout = 0
			set(&c)
			o := options(t)
			cfg, err := ModelConfig(&c, st)
			check(t, err)
			cfg.Sparse = false
			prog, err := cfg.Build()
			check(t, err)
			w, err := newWorkers(o.Device, 2)
			check(t, err)
			in, err := newInputs(o.Device, st)
			check(t, err)
			found := 0
			for b, spec := range prog.Bufs {
				if spec.Made == nil {
					continue
				}
				found++
				want, err := in.full(prog, b, w)
				check(t, err)
				for what, rows := range map[string]kernels.Span{"all": {Hi: n}, "some": {Lo: n / 3, Hi: n / 2}, "one": {Lo: 7, Hi: 8}, "none": {}} {
					for step := 1; step <= 2; step++ {
						for _, bytes := range []int{1, 1 << 16, 1 << 30} {
							in.panelBytes = bytes
							list := []int32{}
							for v := rows.Lo; v < rows.Hi; v += step {
								list = append(list, int32(v))
							}
							got, err := o.Device.Alloc(len(list), spec.Cols)
							check(t, err)
							check(t, in.make(prog, b, got, list, w))
							where := fmt.Sprintf("%s, sparse %v, %s of %s rows, step %d, panels of %d bytes", name, sparse, spec.Name, what, step, bytes)
							sameRowsOf(t, where, want, got, list)
							o.Device.Free(got)
						}
					}
				}
			}
			if found == 0 {
				t.Errorf("%s makes no constants", name)
			}
			in.close()
			check(t, w.close())
		}
	}
}

// sameRowsOf compares got with rows of want.
func sameRowsOf(t *testing.T, what string, want, got *kernels.Mat, rows []int32) {
	t.Helper()
	for i, v := range rows {
		for c, x := range want.Row(int(v)) {
			if y := got.Row(i)[c]; math.Float32bits(x) != math.Float32bits(y) {
				t.Fatalf("%s: row %d, column %d is %v, want %v", what, v, c, y, x)
			}
		}
	}
}

func TestPanelsFit(t *testing.T) {
	for _, c := range []struct {
		budget, sources, rows, cols, want int
	}{
		{64 << 20, 233000, 58000, 602, 64},
		{64 << 20, 1000, 10, 602, 16768},
		{1 << 20, 100, 1 << 20, 128, 335488}, // a quarter of what is made
		{64 << 20, 400000, 10, 602, 32},
		{64 << 20, 1 << 30, 10, 602, 16},
		{1, 0, 0, 5, 16},
	} {
		in := &inputs{panelBytes: c.budget}
		m := &kernels.Mat{Rows: c.rows, Cols: c.cols, Stride: kernels.PadCols(c.cols)}
		if got := in.panel(c.sources, m); got != c.want {
			t.Errorf("%d bytes, %d sources, %d x %d values: panels of %d columns, want %d", c.budget, c.sources, c.rows, c.cols, got, c.want)
		}
	}
}
