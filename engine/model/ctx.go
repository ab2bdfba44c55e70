package model

import "dorylus/kernels"

// Ctx is what an op sees: the rows of one block.
type Ctx struct {
	S kernels.Stream
	// Mats has the block's rows of each buffer, by buffer index; only those that
	// the step names are set.
	Mats []*kernels.Mat
	// Rows is the block's row range within each level's matrices, IDs the user's
	// vertex indices of these rows (the dropout's row ids).
	Rows []kernels.Span
	IDs  [][]int32
	// AllIDs are the vertex indices of all rows of each level.
	AllIDs [][]int32
	// Features of the block's rows of level 0: a matrix, or all rows as a sparse
	// graph with FeatRows the block's.
	X        *kernels.Mat
	SparseX  kernels.Graph
	FeatRows kernels.Span
	// Weights and Grads are by parameter index.
	Weights, Grads []*kernels.Mat

	// Loss: labels of the block's rows of the last level (-1: not a training
	// row), the scale 1/Σ weights, and where the block's loss goes.
	Labels    []int32
	ClassW    *kernels.Mat
	LossScale float32
	Loss      []float64 // length 1

	Block int
	Epoch int
	Seed  uint64
	Train bool // dropout is on
	// Scratch is a matrix whose contents last until the op returns. Slot tells
	// several of one op apart.
	Scratch func(slot, rows, cols int) *kernels.Mat
}

// Drop is the dropout of rate p on rows of a level, keyed for a layer; off
// outside training.
func (c *Ctx) Drop(p float32, level, layer int) kernels.Dropout {
	if !c.Train || p == 0 {
		return kernels.Dropout{}
	}
	return kernels.Dropout{P: p, Key: kernels.DropKey(c.Seed, c.Epoch, layer), IDs: c.IDs[level]}
}
