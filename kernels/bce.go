package kernels

// MultiLabel has the loss of vertices that may belong to several classes.
type MultiLabel interface {
	// SigmoidBCE is binary cross-entropy of every class, forward and gradient in
	// one. For the rows r of logits with mask[r] >= 0, with y[r,c] = 1 for the
	// classes that row r of targets lists (rows and columns as logits), else 0:
	//
	//	loss     += posW[c]·y·softplus(-z) + (1-y)·softplus(z), times scale, z = logits[r,c]
	//	grad[r,c] = (posW[c]·y·(sigmoid(z)-1) + (1-y)·sigmoid(z))·scale
	//
	// Other rows add nothing and get a zero gradient. posW is 1 x classes or nil.
	// loss[0] is set, in float64. grad may be nil, or logits itself.
	SigmoidBCE(grad *Mat, loss []float64, logits *Mat, targets *CSR, mask []int32, posW *Mat, scale float32)
}
