package pserver

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// TestLayout: all rows of all parameters, each once, in order, one run per shard; what is
// tiny is whole; and no shard has more than its part and what could not be cut.
func TestLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for n := range 3000 {
		var specs []model.ParamSpec
		var total, coarse int64
		for range rng.IntN(8) {
			s := model.ParamSpec{Rows: rng.IntN(1 + rng.IntN(400)), Cols: rng.IntN(1 + rng.IntN(90))}
			if s.Rows*s.Cols <= tiny {
				coarse = max(coarse, values(s))
			} else {
				coarse = max(coarse, int64(s.Cols))
			}
			specs, total = append(specs, s), total+values(s)
		}
		shards := 1 + rng.IntN(12)
		all := Layout(specs, shards)
		next := make([]int, len(specs))
		for k, slices := range all {
			var have int64
			last := -1
			for _, s := range slices {
				if s.Param <= last || s.Rows.Lo != next[s.Param] || s.Rows.Len() < 1 {
					t.Fatalf("case %d: shard %d has %v, after rows %v", n, k, slices, next)
				}
				if values(specs[s.Param]) <= tiny && s.Rows != (kernels.Span{Hi: specs[s.Param].Rows}) {
					t.Fatalf("case %d: parameter %d of %d values is cut: %v", n, s.Param, values(specs[s.Param]), s.Rows)
				}
				last, next[s.Param] = s.Param, s.Rows.Hi
				have += int64(s.Rows.Len()) * int64(specs[s.Param].Cols)
			}
			if most := total/int64(shards) + 1 + coarse; have > most {
				t.Fatalf("case %d: shard %d of %d has %d values of %d, at most %d can be explained", n, k, shards, have, total, most)
			}
		}
		for p, s := range specs {
			if next[p] != s.Rows && s.Rows > 0 {
				t.Fatalf("case %d: parameter %d of %d rows: %d are given out", n, p, s.Rows, next[p])
			}
		}
		if !reflect.DeepEqual(all, Layout(specs, shards)) {
			t.Fatalf("case %d: another layout the second time", n)
		}
	}
}

func TestLayoutByHand(t *testing.T) {
	specs := []model.ParamSpec{{Rows: 1433, Cols: 16}, {Rows: 1, Cols: 16}, {Rows: 16, Cols: 7}, {Rows: 1, Cols: 7}}
	if got, want := fmt.Sprint(Layout(specs, 3)), "[[{0 {0 480}}] [{0 {480 961}}] [{0 {961 1433}} {1 {0 1}} {2 {0 16}} {3 {0 1}}]]"; got != want {
		t.Errorf("Cora's network in 3:\n got %s\nwant %s", got, want)
	}
	if got, want := fmt.Sprint(Layout(specs[2:], 3)), "[[] [{0 {0 16}}] [{1 {0 1}}]]"; got != want {
		t.Errorf("tiny parameters in 3:\n got %s\nwant %s", got, want)
	}
}
