package kernels

// Graph is a CSR that is resident on a Device.
type Graph interface {
	Rows() int
	Cols() int
	Edges() int
}

// Device owns memory; Stream orders work on it.
type Device interface {
	// Name is "ref", "cpu/scalar", "cpu/avx2", "cpu/avx512", "cuda:0".
	Name() string
	// Alloc returns a zeroed matrix whose rows are PadCols(cols) apart. The
	// padding is zero too.
	Alloc(rows, cols int) (*Mat, error)
	// Free gives back a matrix of Alloc, the same pointer; nil does nothing.
	Free(*Mat)
	// Load makes g resident; a CSR that Validate rejects is an error. The device
	// may keep g's slices: the caller must neither change nor unmap them until
	// Unload.
	Load(g *CSR) (Graph, error)
	Unload(Graph)
	NewStream() (Stream, error)
	// Close releases the device. Where Mats, Graphs or Streams are still held, it
	// reports them and releases nothing: they can be given back, and Close called
	// again.
	Close() error
}

// Trans says which operands of a GEMM are transposed.
type Trans uint8

// The three products that training needs.
const (
	NN Trans = iota // dst = a·b
	NT              // dst = a·bᵀ
	TN              // dst = aᵀ·b
)

// Act is an activation function.
type Act uint8

// Activations, and their derivatives in terms of the value a they gave:
//
//	Identity   x                        1
//	ReLU       0       if x <= 0        0        if a <= 0
//	LeakyReLU  0.2*x   if x <= 0        0.2      if a <= 0
//	ELU        exp(x)-1 if x <= 0       a + 1    if a <= 0
//	Tanh       tanh(x)                  1 - a²
//
// and otherwise x and 1: a NaN, which is not <= 0, stays NaN.
const (
	Identity Act = iota
	ReLU
	LeakyReLU
	ELU
	Tanh
)

// Dropout sets a value to 0 with probability P, whatever it was (NaN too), and
// multiplies the others by KeepScale, 1/(1-P). With P == 0 it does nothing.
// The value in row r and column c of the op's output survives if
// DropKeep(DropRow(Key, id of r), c, Threshold()).
// Its bits are counter-based: they depend on Key, the row's id and the column
// only, never on threads or on the order of the work (DropKeep is the formula).
type Dropout struct {
	P   float32 // 0: no dropout
	Key uint64  // made by DropKey from seed, epoch and layer
	// IDs[r] identifies row r of the op's output: one id per row of the whole
	// matrix passed to the op, whatever its span. nil: the row index itself. An
	// op on dst.Sub(rows) therefore wants IDs[rows.Lo:rows.Hi].
	IDs []int32
}

// Epilogue is fused into the end of a product: dst = drop(act(x + bias)). Bias is
// added as written: where x + bias is NaN, so is act of it.
type Epilogue struct {
	Bias *Mat // 1 x cols, or nil
	Act  Act
	Drop Dropout
}

// Scale is the normalisation of a gather: Row has one value per output row, Col
// one per source row, each a Mat of n x 1 with Stride 1 (as Alloc(n, 1) gives).
// nil: 1.
type Scale struct{ Row, Col *Mat }

// Self is the term that a gather adds for a row's own vertex, before its edges.
type Self struct {
	On bool // false: no self term
	// Col[v] is the source row of v itself; -1: v is not among the sources and
	// adds nothing. nil: v.
	Col []int32
	// W has one weight per output row, n x 1; nil: 1.
	W *Mat
}

// Gather is what SpMM computes besides the plain sum.
type Gather struct {
	Scale Scale
	Self  Self
	// W has one value per edge (Edges x 1, Stride 1) and replaces the graph's
	// own values; nil: the graph's values, or 1.
	W  *Mat
	Ep *Epilogue // nil: none
}

// Adam holds the hyperparameters of one optimiser step, PyTorch's semantics. The
// formula is at Stream.Adam.
type Adam struct {
	LR, Beta1, Beta2, Eps float32
	WeightDecay           float32
	Decoupled             bool // AdamW: decay the weights, not the gradient
	Step                  int  // 1 for the first step
}

// SGD holds the hyperparameters of one SGD step, PyTorch's semantics
// (dampening 0, no Nesterov).
type SGD struct {
	LR, Momentum, WeightDecay float32
	Step                      int // 1 for the first step
}

// Stream runs its ops in order and may run them later. It belongs to one
// goroutine at a time. The first error sticks: Wait returns it, with the op and
// its shapes, and until then further ops do nothing. Each op "sets" its output
// (never adds to it), within the rows named, and leaves its inputs unchanged.
// Rows of dst outside the span, and padding, are not touched. dst shares no memory
// with an input unless the op says it may. Wrong shapes are bugs of the caller and
// panic with a *ShapeError before any work is done (Check and the op's name).
// Slices that an op is given (src, ids, labels, IDs, loss, dst of Get and ToBF16)
// belong to the stream until Wait.
//
// A device whose memory the host cannot address gives matrices without Host. Its ops
// want matrices of its own and panic with a *ShapeError at others, but for those that
// move rows between the two memories: src of Copy and of GatherRows may be a host
// matrix, and so may dst of Copy (not both). A host matrix belongs to the stream until
// Wait, like a slice.
//
// NaN and Inf are values like others: they reach dst by the rules of IEEE
// arithmetic, through the terms that the op's formula names and no others. No op
// skips a term because a factor of it is 0.
type Stream interface {
	// Put copies src, row after row without padding, to dst.
	Put(dst *Mat, src []float32)
	// Get copies src, row after row without padding, to dst.
	Get(dst []float32, src *Mat)
	// Copy sets dst = src, same shape.
	Copy(dst, src *Mat)
	// Zero sets dst = 0.
	Zero(dst *Mat)

	// GEMM sets dst = op(a)·op(b), then the epilogue (nil: none) on dst. Rows
	// of dst may depend, in the last bits, on the number of rows in the call:
	// callers pass one block per call, but to a BlockSummer. Sums of no terms are 0.
	GEMM(dst, a, b *Mat, t Trans, ep *Epilogue)

	// SpMM gathers. For v in rows:
	//
	//	acc    = self.w[v] * cs[self(v)] * x[self(v),:]        if the self term is on
	//	acc   += cs[u] * w[e] * x[u,:]                         in-edges e = (u,v), in edge order
	//	dst[v] = epilogue(rs[v] * acc)
	//
	// A row's bits depend on neither rows nor tiling. dst has g.Rows() rows and x
	// g.Cols(). Rows without edges and self term become epilogue(0), whatever
	// rs[v] is. Row ids of the epilogue's dropout and the entries of Scale.Row
	// and Self are indexed by v. A factor that is nil is left out. Products and
	// sums may be fused and factors multiplied in any order, but per term and the
	// same for every call.
	SpMM(dst *Mat, g Graph, x *Mat, ga Gather, rows Span)

	// SpMMT scatters within one call, sequentially in row order:
	//
	//	dst = 0;  dst[u,:] += w[e] * x[v,:]      v in rows ascending, e = (u,v) in edge order
	//
	// dst has g.Cols() rows, x g.Rows(). w is as Gather.W. All of dst is set, also
	// with an empty span.
	SpMMT(dst *Mat, g Graph, w, x *Mat, rows Span)

	// SDDMM sets dst[e] = <x[u,:], y[v,:]> for v in rows, e = (u,v). dst is
	// Edges x 1; the graph's own values are not read. A value's bits do not
	// depend on rows.
	SDDMM(dst *Mat, g Graph, x, y *Mat, rows Span)

	// EdgeDropout sets dst[e] = drop(w[e]) for v in rows, e = (u,v), with the
	// dropout bits of row v, column u: duplicates of an edge share their bits.
	// dst is Edges x 1; w is the graph's own values, or 1.
	EdgeDropout(dst *Mat, g Graph, d Dropout, rows Span)

	// Forward sets dst[r,:] = epilogue(x[r,:]) for r in rows. dst may be x. A nil
	// epilogue copies.
	Forward(dst, x *Mat, ep *Epilogue, rows Span)

	// Backward sets dx = dy * act'(pre) * drop', where y is what Forward
	// produced with the same epilogue (Bias is not read), for r in rows. dx may
	// be dy, but not y. The dropout mask is recomputed: dx is 0 where it dropped,
	// and elsewhere, with a = y / KeepScale,
	//
	//	dx = dy * KeepScale * act'(a)
	//
	// act' is in the table of Act; ReLU's 0 makes dx 0 even if dy is NaN. A nil
	// epilogue copies dy.
	Backward(dx, dy, y *Mat, ep *Epilogue, rows Span)

	// ColSum sets dst[0,c] = sum of x[r,c] over r in rows, in row order; 0 for an
	// empty span.
	ColSum(dst, x *Mat, rows Span)

	// SoftmaxXent is mean softmax cross-entropy, forward and gradient in one,
	// for r in rows with labels[r] >= 0:
	//
	//	loss     += w[labels[r]] * -log softmax(logits[r,:])[labels[r]] * scale
	//	grad[r,:] = w[labels[r]] * (softmax(logits[r,:]) - onehot(labels[r])) * scale
	//
	// Rows with a label below 0 are not read: they add nothing and get a zero
	// gradient. classW is 1 x classes or nil (1). The row's maximum is subtracted
	// before the exponentials. loss[0] is set, not added to, in float64, summed
	// in row order; 0 for an empty span. grad may be nil (loss only) or logits
	// itself. A label must be below the number of classes.
	SoftmaxXent(grad *Mat, loss []float64, logits *Mat, labels []int32, classW *Mat, scale float32, rows Span)

	// Add sets dst = a + b, same shape; dst may be a or b.
	Add(dst, a, b *Mat)

	// Adam updates p in place from gradient g and moments m, v, same shape, with
	// t = Step. The scalars in brackets are computed in float64 from the float32
	// hyperparameters, once per call:
	//
	//	p  = p * [1 - LR*WeightDecay]          if Decoupled, else
	//	g' = g + WeightDecay*p
	//	m  = Beta1*m + [1-Beta1]*g'
	//	v  = Beta2*v + [1-Beta2]*g'²
	//	p  = p - [LR/(1-Beta1^t)] * m / (sqrt(v) / [sqrt(1-Beta2^t)] + Eps)
	Adam(p, g, m, v *Mat, h Adam)
	// SGD updates p in place; m is the momentum buffer, and may be nil, and is
	// not touched, if Momentum is 0:
	//
	//	g' = g + WeightDecay*p
	//	m  = g' on step 1, else Momentum*m + g';  g' = m       if Momentum is not 0
	//	p  = p - LR*g'
	SGD(p, g, m *Mat, h SGD)

	// GatherRows sets dst[i,:] = src[ids[i],:].
	GatherRows(dst, src *Mat, ids []int32)
	// ScatterRows sets dst[ids[i],:] = src[i,:]; ids has no repeats.
	ScatterRows(dst, src *Mat, ids []int32)

	// ToBF16 rounds src to bfloat16, nearest even, row after row without
	// padding; what rounds past the largest becomes infinite and NaN stays NaN
	// (any). dst holds Rows*Cols values.
	ToBF16(dst []uint16, src *Mat)
	// FromBF16 widens src, row after row without padding, into dst.
	FromBF16(dst *Mat, src []uint16)

	Accumulator
	MaxGatherer
	AttentionGatherer
	Normalizer
	MultiLabel

	// Wait runs what is queued and returns the first error since the last Wait.
	Wait() error
	// Close releases the stream. It waits first.
	Close() error
}
