package workload

import (
	"fmt"

	"dorylus/kernels"
)

// Key is a kind of work. Two calls of an op that cost the same per unit share it.
type Key struct {
	Op string // one of the constants below
	// Cols is the width of the rows that are gathered or made, Inner the number of terms
	// of each sum of a product, Heads those of attention. 0 where it makes no difference.
	Cols, Inner, Heads int
	Act                kernels.Act
	Drop               bool
}

// The ops, and their unit.
const (
	Product       = "product"         // a row of a·b
	ProductNT     = "product a·bᵀ"    // a row of it
	ProductTN     = "product aᵀ·b"    // a row of a and b
	Gather        = "gather"          // an edge
	Sparse        = "sparse product"  // a non-zero feature
	SparseBack    = "sparse gradient" // a non-zero feature
	MaxGather     = "max gather"      // an edge
	MaxBack       = "max gradient"    // an edge
	AttentionFwd  = "attention"       // an edge
	AttentionDst  = "attention ∇dst"  // an edge
	AttentionSrc  = "attention ∇src"  // an edge
	EdgeDrop      = "edge dropout"    // a non-zero feature
	Epilogue      = "epilogue"        // a value
	EpilogueBack  = "epilogue ∇"      // a value
	Loss          = "loss"            // a value
	MultiLoss     = "loss, several"   // a value
	Values        = "values"          // a value read or written once, in order
	scatteredCost = 2                 // a value of a row picked from anywhere, in Values
)

// String is "gather 128", "product 602x128".
func (k Key) String() string {
	switch k.Op {
	case Product, ProductNT, ProductTN:
		return fmt.Sprintf("%s %dx%d", k.Op, k.Inner, k.Cols)
	case Epilogue, EpilogueBack:
		if k.Drop {
			return k.Op + " with dropout"
		}
	}
	if k.Heads > 0 {
		return fmt.Sprintf("%s %d heads of %d", k.Op, k.Heads, k.Cols/k.Heads)
	}
	if k.Cols > 0 {
		return fmt.Sprintf("%s %d", k.Op, k.Cols)
	}
	return k.Op
}

// Flops are the floating point operations of a unit; only products have any to speak of.
func (k Key) Flops() float64 {
	switch k.Op {
	case Product, ProductNT, ProductTN:
		return 2 * float64(k.Cols) * float64(k.Inner)
	}
	return 0
}

// GatherBytes are the bytes of rows from anywhere that a unit reads: the rows of its
// sources.
func (k Key) GatherBytes() float64 {
	switch k.Op {
	case Gather, Sparse, MaxGather, AttentionFwd:
		return 4 * float64(k.Cols)
	case AttentionDst, AttentionSrc, SparseBack, MaxBack:
		return 8 * float64(k.Cols)
	}
	return 0
}

// ValueBytes are the bytes that a unit reads and writes in order.
func (k Key) ValueBytes() float64 {
	switch k.Op {
	case Values:
		return 4
	case Epilogue, Loss, MultiLoss, EdgeDrop:
		return 8
	case EpilogueBack:
		return 12
	}
	return 0
}

// Amount is so many units of a kind of work.
type Amount struct {
	Key   int // of Workload.Keys
	Units float64
}

// Amounts are the work of a task.
type Amounts []Amount

// Seconds is the time they take with so many seconds a unit, by key.
func (a Amounts) Seconds(perUnit []float64) float64 {
	s := 0.0
	for _, x := range a {
		s += x.Units * perUnit[x.Key]
	}
	return s
}
