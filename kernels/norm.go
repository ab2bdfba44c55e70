package kernels

// Normalizer has the row-wise and column-wise pieces of layer and batch
// normalisation.
type Normalizer interface {
	// LayerNorm sets, for each row with mean m and population variance s² over its
	// columns,
	//
	//	stat[r,:]  = (m, 1/sqrt(s² + eps))
	//	dst[r,c]   = (x[r,c] - m)·stat[r,1]·gamma[c] + beta[c]
	//
	// gamma and beta are 1 x cols, stat is rows x 2. Rows do not depend on each other.
	LayerNorm(dst, stat, x, gamma, beta *Mat, eps float32)

	// LayerNormBack is its gradient; x^ is (x - stat[r,0])·stat[r,1], g is dy·gamma:
	//
	//	dx[r,c]   = stat[r,1]·(g[r,c] - mean(g[r,:]) - x^[r,c]·mean(g[r,:]·x^[r,:]))
	//	dgamma[c] = sum of dy[r,c]·x^[r,c],  dbeta[c] = sum of dy[r,c], in row order
	//
	// dx may be dy. Sums over no rows are 0.
	LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *Mat)

	// ColMoments sets dst (2 x cols) to each column's mean and sum of squared
	// distances from it, over the rows of x; 0 for no rows.
	ColMoments(dst, x *Mat)

	// ColAffine sets dst[r,c] = a[c]·x[r,c] + b[c]·y[r,c] + d[c]; a, b and d are
	// 1 x cols. y and b may both be nil, for no such term. dst may be x or y.
	ColAffine(dst, x, y, a, b, d *Mat)
}
