package kernels

// Attention is how the rows of a gather are weighed by GAT (Veličković et al.,
// ICLR 2018). With H heads of D columns, head h of a row is its columns
// [h·D,(h+1)·D). For the edge u -> v of weight w,
//
//	z(u,v,h)     = as[u,h] + ad[v,h],   s = z for z > 0, else Slope·z
//	alpha(u,v,h) = w·exp(s(u,v,h)) / sum over in-edges and self term of v
//
// so that a weight acts like that many parallel edges. w is the graph's own value,
// or 1, and for the self term Self.W, or 1. Weights are not negative; a term of
// weight 0 is passed over, whatever its rows hold. Where a z is NaN or +Inf, the
// head of that row becomes NaN.
type Attention struct {
	Heads int
	Slope float32 // 0 to 1
	// Self is the self-loop of each row, as in a gather: Self.Col maps a row of
	// the output to its own row among those gathered, -1 for none, and Self.W is
	// indexed by the row of the output.
	Self Self
	// Drop drops whole alphas, after the softmax. Its bits belong to the edge,
	// modulo 2³²:
	//
	//	keep(u,v,h) = DropKeep(DropRow(Key, DstIDs[v]), uint32(SrcIDs[u])·uint32(Heads) + uint32(h), Threshold())
	//
	// so that forward and backward, and every partition, see the same ones, and
	// duplicates of an edge share theirs. SrcIDs has one id per source, DstIDs one
	// per destination; a nil list means the row itself. Drop.IDs is not used.
	Drop           Dropout
	SrcIDs, DstIDs []int32
}

// AttentionGatherer has GAT's gather and its gradient. Nothing of the size of the
// edges is stored: alphas are computed again backward from lse, the logarithm of
// each row's sum of exponentials.
//
// Rows of x and as are sources, those of ad, lse, dot and dy destinations. All
// have Heads columns but x and dy, which have Heads·D. keep' is keep/(1-P), a
// factor: one of 0 hides neither NaN nor Inf of a row. A row's bits do not depend
// on the span. The narrow matrices are read once per edge: as views of one
// matrix's columns (Mat.Columns) they share cache lines.
type AttentionGatherer interface {
	// GAT sets, for v in rows,
	//
	//	lse[v,h]     = log of the sum of w·exp(s), which does not overflow for large s
	//	dst[v,h·D+c] = epilogue(sum of alpha·keep'·x[u,h·D+c], self term first, then edge order)
	//
	// A row without terms is epilogue(0), its lse -Inf. Row ids of the epilogue's
	// dropout are indexed by v.
	GAT(dst, lse *Mat, g Graph, x, as, ad *Mat, p Attention, ep *Epilogue, rows Span)

	// GATBackDst is the part of the gradient that gathers along the graph. With
	// q = keep'·<dy[v,h],x[u,h]> and s' the slope at z (1 for z > 0), for v in rows:
	//
	//	dot[v,h] = sum of alpha·q
	//	dad[v,h] = sum of alpha·q·s' - dot[v,h]·sum of alpha·s'
	GATBackDst(dad, dot *Mat, g Graph, x, as, ad, lse, dy *Mat, p Attention, rows Span)

	// GATBackSrc is the part along the transpose, whose row u lists the v of its
	// edges u -> v with their weights; p.Self.Col maps a source to its own row among
	// the destinations. For u in rows:
	//
	//	dx[u,h·D+c] = sum over v of alpha·keep'·dy[v,h·D+c], self term first, then edge order
	//	das[u,h]    = sum over v of alpha·(keep'·<dy[v,h],x[u,h]> - dot[v,h])·s'
	GATBackSrc(dx, das *Mat, back Graph, x, as, ad, lse, dot, dy *Mat, p Attention, rows Span)

	// HeadDot sets dst[r,h] = <x[r,h],a[h,:]>, a being Heads x D.
	HeadDot(dst, x, a *Mat)
	// HeadOuterAdd adds d[r,h]·a[h,c] to dx[r,h·D+c].
	HeadOuterAdd(dx, d, a *Mat)
	// HeadDotGrad sets da[h,c] = sum of d[r,h]·x[r,h·D+c] over rows, in row order.
	HeadDotGrad(da, d, x *Mat)
	// HeadMean sets dst[r,c] = epilogue(mean over h of x[r,h·D+c]).
	HeadMean(dst, x *Mat, heads int, ep *Epilogue)
	// HeadSpread is HeadMean's gradient: dx[r,h·D+c] = d[r,c]/heads.
	HeadSpread(dx, d *Mat, heads int)
}
