package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// sized is a store of blocks of 16 rows; row v has degree[v] in-edges (and as many
// out-edges) that nobody reads.
func sized(degree []int, features int) *store.Store {
	st := &store.Store{Meta: store.Meta{Name: "sized", Vertices: len(degree), BlockRows: 16, Symmetric: true}}
	ptr := make([]int64, 1, len(degree)+1)
	for _, d := range degree {
		ptr = append(ptr, ptr[len(ptr)-1]+int64(d))
	}
	st.In = &kernels.CSR{Cols: len(degree), RowPtr: ptr}
	st.Out = st.In
	if features > 0 {
		st.Dense = &kernels.Mat{Rows: len(degree), Cols: features, Stride: features}
	}
	return st
}

func draw(rng *rand.Rand, n int) (degree []int, train []int32) {
	degree = make([]int, n)
	for v := range degree {
		degree[v] = int(rng.ExpFloat64() * 20)
		if rng.IntN(50) == 0 {
			degree[v] += rng.IntN(2000)
		}
		if rng.IntN(10) == 0 {
			train = append(train, int32(v))
		}
	}
	return degree, train
}

// checkRuns fails unless cuts are parts runs that cover all blocks, none empty while
// there are blocks enough.
func checkRuns(t *testing.T, cuts []task.Range, parts, blocks int) {
	t.Helper()
	if len(cuts) != parts {
		t.Fatalf("%d runs, want %d", len(cuts), parts)
	}
	at := 0
	for i, r := range cuts {
		if r.Lo != at || r.Hi < r.Lo || i < blocks && r.Len() == 0 {
			t.Fatalf("run %d of %v is %v, want one that begins at %d (%d blocks)", i, cuts, r, at, blocks)
		}
		at = r.Hi
	}
	if at != blocks {
		t.Fatalf("runs %v end at block %d of %d", cuts, at, blocks)
	}
}

func TestPartitionCoversAllBlocks(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		degree, train := draw(rng, rng.IntN(700))
		st := sized(degree, rng.IntN(100))
		for _, parts := range []int{-1, 0, 1, 2, 3, 4, 8, 17, 100} {
			cuts := Partition(st, train, parts)
			checkRuns(t, cuts, max(parts, 1), Blocks(&st.Meta))
			if again := Partition(st, train, parts); !slices.Equal(cuts, again) {
				t.Fatalf("seed %d: %d parts are %v, then %v", seed, parts, cuts, again)
			}
		}
	}
}

// The largest cost is the smallest possible, by trying every cut.
func TestPartitionIsOptimal(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		degree, train := draw(rng, 16+rng.IntN(16*9))
		st := sized(degree, 8)
		cost := blockCosts(st, train)
		blocks := len(cost) - 1
		for parts := 1; parts <= min(blocks, 5); parts++ {
			worst := uint64(0)
			cuts := Partition(st, train, parts)
			checkRuns(t, cuts, parts, blocks)
			for _, r := range cuts {
				worst = max(worst, cost[r.Hi]-cost[r.Lo])
			}
			if want := bestCut(cost, 0, parts); worst != want {
				t.Fatalf("seed %d: %d blocks in %d runs %v: largest cost %d, want %d", seed, blocks, parts, cuts, worst, want)
			}
		}
	}
}

func bestCut(cost []uint64, lo, parts int) uint64 {
	blocks := len(cost) - 1
	if parts == 1 {
		return cost[blocks] - cost[lo]
	}
	best := ^uint64(0)
	for hi := lo + 1; hi <= blocks-(parts-1); hi++ {
		best = min(best, max(cost[hi]-cost[lo], bestCut(cost, hi, parts-1)))
	}
	return best
}

func TestPartitionBalancesEachLoad(t *testing.T) {
	degree, train := draw(rand.New(rand.NewPCG(7, 3)), 16*600)
	st := sized(degree, 32)
	loads := Loads(st, train)
	all := loads[len(loads)-1]
	for _, parts := range []int{2, 4, 8} {
		for i, r := range Partition(st, train, parts) {
			l := loads[r.Lo].Between(loads[r.Hi])
			for _, c := range []struct {
				what      string
				part, all int64
				most      float64
			}{
				{"edges", l.Edges, all.Edges, 1.1}, {"bytes", l.Bytes, all.Bytes, 1.15}, {"training rows", int64(l.Train), int64(all.Train), 1.25},
			} {
				if ratio := float64(c.part) * float64(parts) / float64(c.all); ratio > c.most {
					t.Errorf("partition %d of %d has %.3f times the average %s, want at most %.2f", i, parts, ratio, c.what, c.most)
				}
			}
		}
	}
}

// What edges alone would put together is cut where the training vertices are.
func TestPartitionWeighsTraining(t *testing.T) {
	degree := make([]int, 16*12)
	for v := range degree {
		degree[v] = 4
	}
	st := sized(degree, 0)
	var train []int32
	for v := range int32(16 * 2) {
		train = append(train, v)
	}
	even := Partition(st, nil, 2)
	if want := (task.Range{Lo: 0, Hi: 6}); even[0] != want {
		t.Errorf("without training vertices the first half is %v, want %v", even[0], want)
	}
	if uneven := Partition(st, train, 2); uneven[0].Len() >= even[0].Len() {
		t.Errorf("with all training vertices in two blocks the first part is %v, want fewer than %d blocks", uneven[0], even[0].Len())
	}
}

// A block that costs more than its share leaves the other runs equal, wherever it is.
func TestPartitionAroundALump(t *testing.T) {
	for _, at := range []int{0, 50, 99} {
		degree := make([]int, 16*100)
		for v := range degree {
			degree[v] = 4
		}
		degree[16*at] = 4 * 16 * 60
		for i, r := range Partition(sized(degree, 0), nil, 10) {
			if n := r.Len(); r.Has(at) != (n == 1) || n > 17 || n != 1 && n < 5 {
				t.Errorf("hub in block %d: run %d of 10 is %v, want one of 5 to 17 blocks, or the hub's alone", at, i, r)
			}
		}
	}
}

// Offsets that nobody has checked may be anything but the last one.
func TestPartitionOfWrongOffsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		degree, train := draw(rng, 16*20)
		st := sized(degree, 3)
		for range 1 + rng.IntN(20) {
			st.In.RowPtr[rng.IntN(20)*16] = int64(rng.Uint64())
		}
		for _, parts := range []int{1, 5, 30} {
			checkRuns(t, Partition(st, train, parts), parts, 20)
		}
	}
}

func TestBlockSpan(t *testing.T) {
	m := &store.Meta{Vertices: 35, BlockRows: 16}
	got := fmt.Sprint(Blocks(m), BlockSpan(m, task.Range{Lo: 1, Hi: 3}), BlockSpan(m, task.Range{Lo: 3, Hi: 3}))
	if want := "3 {16 35} {35 35}"; got != want {
		t.Errorf("35 rows in blocks of 16: %s, want %s", got, want)
	}
}
