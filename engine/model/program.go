// Package model holds the models as tables of stages. A model is a function from
// a Config to a Program: buffers, parameters and steps, forward and backward,
// with no loops over data and no automatic differentiation.
package model

import (
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Init is how a parameter starts.
type Init uint8

// Initialisations.
const (
	Zero   Init = iota
	Glorot      // uniform in ±sqrt(6/(rows+cols)), as PyG's glorot
	One
)

// ParamSpec is one trainable matrix, Rows x Cols; a bias is 1 x Cols.
type ParamSpec struct {
	// Name is PyG's: "conv1.lin.weight". Weights are stored in x out and
	// exported transposed, out x in, as PyTorch keeps them, where Transposed.
	Name       string
	Rows, Cols int
	Init       Init
	Transposed bool
	Layer      int   // 1-based
	Bias       bool  // weight decay usually leaves these alone
	Shape      []int // in which it is exported; nil: as above, a Bias of one dimension
	// Stat is a running statistic, not trained: what is pushed as its gradient is
	// its value in the epoch, and an update moves it a tenth of the way there, as
	// PyTorch's batch normalisation does.
	Stat bool
}

// X is the buffer of input features in every program: level 0, constant.
const X = 0

// Buf is a matrix of one row per vertex of a row level. Level 0 is the input
// side; a gather goes from one level to the next. In a training epoch a level
// holds only the vertices that the loss can see.
type Buf struct {
	Name  string
	Level int
	Cols  int
	// Const buffers are made once, before the first epoch, by the gather Made
	// (nil: they are the features).
	Const bool
	Made  *Gather
	// Published: other intervals gather its rows.
	Published bool
	// Grad: it holds a gradient, alone or beside what belongs to it.
	Grad bool
	// Edges: one value per non-zero feature instead of one row per vertex.
	Edges bool
	// RefCols are columns, RefLo up to RefHi, that hold not numbers but rows of level
	// Level-1, as kernels.ArgBits writes them; none where RefHi is 0.
	RefLo, RefHi int
	// PerBlock: one row per block instead of one per vertex. Level is not used.
	PerBlock bool
}

// NoBuf marks an absent buffer.
const NoBuf = -1

// Norm is how a gather is normalised.
type Norm uint8

// Normalisations.
const (
	NormNone Norm = iota
	NormGCN       // D^-½ (A+I) D^-½ with D by weighted in-degree (Kipf and Welling, 2017)
	NormMean      // each row divided by the sum of its edge weights; no self-loops
	NormSelf      // not scaled; self-loops of weight 1 where there are none
)

// Gather is what a GA step computes: Dst from Src along the edges between levels
// Hop and Hop+1.
type Gather struct {
	Hop      int
	Back     bool // along the transpose, from level Hop+1 to level Hop
	Src, Dst int  // buffer indices
	Norm     Norm
	// Ep, if not nil, is fused into the gather: it returns the epilogue on
	// whole-level matrices.
	Ep func(c *Ctx) *kernels.Epilogue
	// Run, if not nil, gathers in the place of SpMM.
	Run func(c *Ctx, a *GatherArgs)
	// Reduce, if not nil, is all that it does: Src and Dst are PerBlock buffers, Hop
	// and Norm are not used.
	Reduce *Reduce
}

// GatherArgs are what a gather of its own kind works with.
type GatherArgs struct {
	G    kernels.Graph
	Src  *kernels.Mat // the published rows of the source level
	Args kernels.Gather
	Rows kernels.Span // of the destination level
}

// Op is one stage on the rows of one block, forward or backward.
type Op func(c *Ctx)

// Step is one task of every interval: a gather, a publication, or a run of
// tensor ops fused into one task.
type Step struct {
	Kind  task.Kind
	Dir   task.Dir
	Layer int // 1-based
	// Name says what is fused: "AV", "AV+loss+∇AV".
	Name string
	// Gather is set for GA steps.
	Gather *Gather
	// Publish is the buffer that an SC step publishes, NoBuf otherwise.
	Publish int
	// Reads is the SC step whose rows a GA step gathers, -1 otherwise.
	Reads int
	// Ops run one after the other on each block of the interval.
	Ops []Op
	// In and Out are the buffers that the ops read and set, Params the parameters
	// that the step reads, Grads those whose gradient it sets.
	In, Out, Params, Grads []int
	// Loss says that the step computes the loss.
	Loss bool
	// Alone says that its ops want a context of one block.
	Alone bool
	// Scratch is about how many columns of scratch its ops take per row.
	Scratch int
}

// Program is a model made concrete: what every interval runs through in an
// epoch.
type Program struct {
	Params []ParamSpec
	Bufs   []Buf
	Steps  []Step
	// Forward is the number of leading steps that compute the output; the last
	// of them may go on with the loss, which an evaluation leaves out.
	Forward int
	// ForwardOps is the number of ops of step Forward-1 that belong to the
	// output.
	ForwardOps int
	Levels     int // number of row levels: gathers + 1
	Output     int // the buffer of logits, in the last level
}
