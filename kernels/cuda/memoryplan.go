package cuda

import "dorylus/kernels/spill"

// MakePlan is spill.MakePlan with what a Device takes besides: memory for transfers, and
// what its blocks are rounded up by. products are Options.Products.
func MakePlan(b spill.Budget, products string, needs []spill.Need) *spill.Plan {
	all := []spill.Need{{Name: "transfers", Bytes: chunkBytes * chunkCount}}
	if products == CUBLASProducts {
		all = append(all, spill.Need{Name: "workspace of cuBLAS", Bytes: cublasWorkspace})
	}
	for _, n := range needs {
		n.Bytes += (n.Bytes + 15) / 16 // see BlockBytes
		all = append(all, n)
	}
	return spill.MakePlan(b, all)
}
