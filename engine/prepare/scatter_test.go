package prepare

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"dorylus/kernels"
)

// Edges that are held back end where edges placed one by one do.
func TestScatterInSlabs(t *testing.T) {
	rows, edges := scatterRows, slabEdges
	defer func() { scatterRows, slabEdges = rows, edges }()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 5, 255, 256, 257, 1000, 70000} {
		const records = 20000 // enough for several workers
		src, dst, w := make([]int32, records), make([]int32, records), make([]float32, records)
		for i := range src {
			src[i], dst[i], w[i] = int32(rng.IntN(n)), int32(rng.IntN(n)), rng.Float32()
		}
		order, rank := make([]int32, n), make([]int32, n)
		for r, v := range rng.Perm(n) {
			order[r], rank[v] = int32(v), int32(r)
		}
		make3 := func(w []float32, threads int) []*kernels.CSR {
			g, err := bySource(n, src, dst, w, threads)
			if err != nil {
				t.Fatal(err)
			}
			return []*kernels.CSR{g, transpose(g, nil, nil, threads), transpose(g, order, rank, threads)}
		}
		for _, weights := range [][]float32{nil, w} {
			scatterRows, slabEdges = 1<<30, 1<<30
			want := make3(weights, 1)
			for _, slab := range []int{1, 7, 4096, 30000} {
				scatterRows, slabEdges = 1, slab
				for threads := 1; threads <= 3; threads++ {
					if got := make3(weights, threads); !reflect.DeepEqual(got, want) {
						t.Errorf("%d rows, weights %v, slabs of %d, %d threads: not as placed one by one", n, weights != nil, slab, threads)
					}
				}
			}
		}
	}
}
