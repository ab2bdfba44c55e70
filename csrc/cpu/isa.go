package native

import "fmt"

// ISA is an instruction set for which kernels exist, in rising order.
type ISA int

// The instruction sets.
const (
	Scalar ISA = iota
	AVX2
	AVX512
)

// All lists every instruction set, worst first.
var All = []ISA{Scalar, AVX2, AVX512}

// String is the name that DORYLUS_ISA and device names use.
func (i ISA) String() string {
	switch i {
	case Scalar:
		return "scalar"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	}
	return fmt.Sprintf("ISA(%d)", int(i))
}

// Epilogue is what follows a product: drop(act(x + bias)), act numbered as
// kernels.Act.
type Epilogue struct {
	Bias      []float32 // one per column; nil: none
	IDs       []int32   // one per row; nil: the row's index
	Key       uint64
	Threshold uint32
	Drop      bool
	KeepScale float32
	Act       int
}

// Gather is the argument of SpMM; spmm_body.h has the formula. Strides (LD*) are
// in values.
type Gather struct {
	RowPtr []int64
	Col    []int32
	W      []float32 // one per edge; nil: 1

	// Tile[(t-1)*TileLD+v] is how many edges of row v come from sources before
	// tile t; a tile is TileRows of all Sources. nil: untiled, with Tiles = 1.
	// Group tiles are taken at once and Panel columns. Pack, if not nil, holds
	// Group*TileRows*Panel values for copies of the sources of a pass.
	Tile                                           []int32
	TileLD, Tiles, TileRows, Sources, Group, Panel int
	Pack                                           []float32

	RS, CS  []float32 // row and column scale; nil: 1
	SelfOn  bool
	SelfCol []int32   // nil: the row's own index
	SelfW   []float32 // nil: 1

	X, Y           []float32
	LDX, LDY, Cols int
	Lo, Hi         int
	Ep             *Epilogue // nil: none
}

// Attend is the argument of attention's kernels; gat_body.h has the formulas. Rows
// [Lo,Hi) of the graph gather others: Near holds the scores of the former, Far
// those of the latter. Strides (LD*) are in values.
type Attend struct {
	RowPtr []int64
	Col    []int32
	W      []float32 // one per edge; nil: 1

	SelfOn  bool
	SelfCol []int32   // nil: the row's own index
	SelfW   []float32 // nil: 1

	Heads, D        int // heads, columns of each
	Slope           float32
	Drop            *Epilogue // only its dropout counts
	NearIDs, FarIDs []int32   // of the dropout; nil: the index
	Near, Far       []float32 // one value per head
	LDNear, LDFar   int
	LSE, Dot        []float32 // of the destinations, one value per head
	LDLSE, LDDot    int
	X, Own          []float32 // wide rows: what is gathered, and the rows' own
	LDX, LDOwn      int
	Y               []float32 // wide output
	LDY             int
	Out, Out2       []float32 // outputs of one value per head
	LDOut, LDOut2   int
	Lo, Hi          int
	Ep              *Epilogue // of Y; nil: none
}

// AdamStep holds the scalars of one Adam step; optim_body.h has the formula.
type AdamStep struct {
	LRStep, InvSqrtBC2, Beta1, Beta2, OneBeta1, OneBeta2, Eps, L2, Decay float32
	Decoupled                                                            bool
}

// SGDStep holds the scalars of one SGD step.
type SGDStep struct {
	LR, Momentum, L2 float32
	First            bool
}
