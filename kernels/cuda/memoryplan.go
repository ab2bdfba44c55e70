package cuda

import "dorylus/kernels/spill"

// MakePlan is spill.MakePlan with what a Device takes besides: memory for transfers, and
// a margin. The needs are counted by Costs; products are Options.Products.
func MakePlan(b spill.Budget, products string, needs []spill.Need, moments [][]int64) *spill.Plan {
	if moments == nil {
		all := []int64{}
		for _, n := range needs {
			all = append(all, n.Bytes)
		}
		moments = [][]int64{all}
	}
	most := int64(0)
	for _, m := range moments {
		sum := int64(0)
		for _, n := range m {
			sum += n
		}
		most = max(most, sum)
	}
	more := []spill.Need{
		{Name: "transfers", Bytes: chunkCount * BlockBytes(chunkBytes)},
		{Name: "margin", Bytes: most/marginShare + marginLeast},
	}
	if products == CUBLASProducts {
		more = append(more, spill.Need{Name: "workspace of cuBLAS", Bytes: BlockBytes(cublasWorkspace)})
	}
	needs = append(needs[:len(needs):len(needs)], more...)
	all := make([][]int64, len(moments))
	for i, m := range moments {
		all[i] = m[:len(m):len(m)]
		for _, n := range more {
			all[i] = append(all[i], n.Bytes)
		}
	}
	return spill.MakePlan(b, needs, all)
}

// The margin is for what ops take for a while and nobody counts: sums of slabs of 512 rows,
// lists that no device keeps.
const (
	marginShare = 256
	marginLeast = 64 << 10
)
