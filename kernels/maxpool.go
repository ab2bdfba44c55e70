package kernels

import "math"

// MaxGatherer gathers by the maximum, for GraphSAGE's pooling.
type MaxGatherer interface {
	// SpMMMax sets, for v in rows and each column c,
	//
	//	dst[v,c] = max of x[u,c] over in-edges e = (u,v) of positive weight
	//
	// and arg[v,c] to the u it came from, the first among equals: an int32 kept as
	// the bits of a float32 (ArgBits), so that it can lie beside dst in one matrix.
	// A NaN counts as larger than all numbers. Without such an edge dst is 0 and
	// arg -1. The weights are the graph's own; without them all edges count. arg has
	// dst's shape, or is nil if it is not wanted.
	SpMMMax(dst, arg *Mat, g Graph, x *Mat, rows Span)

	// SpMMMaxBack is its gradient, along the transpose, whose row u lists the v of
	// its edges u -> v. For u in rows,
	//
	//	dx[u,c] = sum of dy[v,c] over those v, each once, with arg[v,c] == u, in edge order
	//
	// The weights of the transpose are not read.
	SpMMMaxBack(dx *Mat, back Graph, dy, arg *Mat, rows Span)
}

// ArgBits is the float32 whose bits are u, as SpMMMax stores it.
func ArgBits(u int32) float32 { return math.Float32frombits(uint32(u)) }

// ArgOf is the u of ArgBits.
func ArgOf(x float32) int32 { return int32(math.Float32bits(x)) }
