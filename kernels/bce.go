package kernels

// MultiLabel has the loss of vertices that may belong to several classes.
type MultiLabel interface {
	// SigmoidBCE is binary cross-entropy of every class, forward and gradient in
	// one. For the rows r of logits with mask[r] >= 0 and z = logits[r,c], where row
	// r of targets lists class c (its values are not read, repeats count once):
	//
	//	loss     += posW[c]·softplus(-z)·scale
	//	grad[r,c] = posW[c]·(sigmoid(z)-1)·scale
	//
	// and where it does not:
	//
	//	loss     += softplus(z)·scale
	//	grad[r,c] = sigmoid(z)·scale
	//
	// Other rows are not read: they add nothing and get a zero gradient. posW is
	// 1 x classes, or nil for 1. loss[0] is set, not added to, in float64, summed in
	// row order. softplus(z) = log(1+exp(z)) does not overflow. grad may be nil, or
	// logits itself.
	SigmoidBCE(grad *Mat, loss []float64, logits *Mat, targets *CSR, mask []int32, posW *Mat, scale float32)
}
