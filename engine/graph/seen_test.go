package graph

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Where a level holds all vertices for convenience, Seen still tells those that the
// seeds depend on.
func TestSeenIsWhatTheSeedsDependOn(t *testing.T) {
	told := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 40 + rng.IntN(60)
		st := randomStore(n, 3*n, 16, seed, false)
		var seeds []int32
		for v := range n {
			if rng.IntN(8) > 0 {
				seeds = append(seeds, int32(v))
			}
		}
		p, err := Build(st, Options{Seeds: seeds, Levels: 4, Seen: true})
		if err != nil {
			t.Fatal(err)
		}
		want := seeds
		for k := 3; k >= 0; k-- {
			got := p.Seen[k]
			switch level := &p.Levels[k]; {
			case got != nil:
				told++
				if level.Rows != nil {
					t.Errorf("seed %d: level %d lists its rows and has a list of those seen too", seed, k)
				}
			case level.Rows != nil:
				got = level.Rows
			default:
				for v := range n {
					got = append(got, int32(v))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("seed %d: level %d: %d rows are seen, want %d", seed, k, len(got), len(want))
			}
			next := map[int32]bool{}
			for _, v := range want {
				next[v] = true
				for _, u := range st.In.Col[st.In.RowPtr[v]:st.In.RowPtr[v+1]] {
					next[u] = true
				}
			}
			want = want[:0:0]
			for v := range next {
				want = append(want, v)
			}
			slices.Sort(want)
		}
	}
	if told == 0 {
		t.Error("no level ever held more than the seeds see: nothing was shown")
	}
}
