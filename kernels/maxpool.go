package kernels

// MaxGatherer gathers by the maximum, for GraphSAGE's pooling.
type MaxGatherer interface {
	// SpMMMax sets, for v in rows and each column c,
	//
	//	dst[v,c] = max of x[u,c] over in-edges e = (u,v) of positive weight
	//
	// and arg[v*cols+c] to the u it came from: the first among equals. A NaN counts
	// as larger than all numbers. Without such an edge dst is 0 and arg -1. arg has
	// one value per value of dst, without padding.
	SpMMMax(dst *Mat, arg []int32, g Graph, x *Mat, rows Span)

	// SpMMMaxBack is its gradient, along the transpose: for u in rows,
	//
	//	dx[u,c] = sum over back-edges (v,u) of  dy[v,c] where arg[v*cols+c] == u, in edge order
	SpMMMaxBack(dx *Mat, back Graph, dy *Mat, arg []int32, rows Span)
}
