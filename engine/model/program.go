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
)

// ParamSpec is one trainable matrix, Rows x Cols; a bias is 1 x Cols.
type ParamSpec struct {
	// Name is PyG's: "conv1.lin.weight". Weights are stored in x out and
	// exported transposed, out x in, as PyTorch keeps them, where Transposed.
	Name       string
	Rows, Cols int
	Init       Init
	Transposed bool
	Layer      int  // 1-based
	Bias       bool // weight decay usually leaves these alone
}

// Buf is a matrix of one row per vertex of a row level. Level 0 is the input
// side; a gather goes from one level to the next. In a training epoch a level
// holds only the vertices that the loss can see.
type Buf struct {
	Name  string
	Level int
	Cols  int
	// Published: other intervals gather its rows.
	Published bool
}

// NoBuf marks an absent buffer.
const NoBuf = -1

// GatherSpec is what a GA step computes: Dst = gather of Src along the edges
// between levels Hop and Hop+1, forward into Hop+1 or backward into Hop.
type GatherSpec struct {
	Hop      int
	Src, Dst int // buffer indices
	// Norm is the normalisation: rows and columns are scaled by the same vector
	// of inverse square roots of degrees.
	Norm Norm
	// Ep, if not nil, is fused into the gather (forward only).
	Ep func(c *Ctx) *kernels.Epilogue
}

// Norm is how a gather is normalised.
type Norm uint8

// Normalisations.
const (
	NormNone Norm = iota
	NormGCN       // D^-½ (A+I) D^-½
)

// Step is one task of every interval. A step is either a gather, a publication,
// or a run of tensor ops fused into one task.
type Step struct {
	Kind  task.Kind
	Dir   task.Dir
	Layer int // 1-based
	Name  string
	// Gather is set for GA steps.
	Gather *GatherSpec
	// Publish is the buffer that an SC step publishes, NoBuf otherwise.
	Publish int
	// Ops run one after the other on each block of the interval (tensor steps).
	Ops []Op
	// In and Out are the buffers that the ops read and set, Params the
	// parameters that they read, Grads those whose gradient they set.
	In, Out, Params, Grads []int
	// Loss says that the step computes the loss.
	Loss bool
}

// Op is one stage on the rows of one block, forward or backward.
type Op func(c *Ctx)

// Program is a model made concrete: what every interval runs through in an
// epoch.
type Program struct {
	Params []ParamSpec
	Bufs   []Buf
	Steps  []Step
	// Forward is the number of leading steps that compute the output; an
	// evaluation runs only these.
	Forward int
	Levels  int // number of row levels: gathers + 1
	Output  int // the buffer of logits, in the last level
}
