// Package dataset reads the files in which people keep graphs, one file per
// format, checks them (see check.go) and makes synthetic ones. A reader turns
// its source into a Raw and interprets nothing: merging duplicates, adding
// reverse edges, ordering and splitting are the job of engine/prepare.
package dataset

import "dorylus/kernels"

// Raw is a graph as its source gives it. Vertices are numbered 0..N-1 in the
// order of the source: the user's own order, in which everything is exported.
type Raw struct {
	Name   string // "cora", or the base name of the source
	Format string // one of Formats(): "planetoid", "edgelist", "pyg", ...
	Files  []string

	N   int
	IDs []string // the user's name of each vertex; nil: 0..N-1

	// Edges Src[i] -> Dst[i], all in [0,N): the message flows from Src to Dst.
	// Weight is nil where the source has none.
	Src, Dst []int32
	Weight   []float32
	// Undirected says that by this format's convention each record stands for
	// both directions (both may be present already).
	Undirected bool

	// Features: at most one of Dense (N x F) and Sparse (N rows, Cols = F).
	Dense  *kernels.Mat
	Sparse *kernels.CSR

	// Labels has the class of each vertex, -1 where it has none; nil: unlabelled.
	Labels  []int32
	Classes []string // class names; nil: 0..max(Labels)
	// Multi has, for each vertex, the classes it belongs to, ascending (Val is
	// nil; N rows, Cols = classes), where a vertex may have several or none.
	// Labels is then nil. A vertex counts as labelled if Labelled is nil or true
	// for it.
	Multi    *kernels.CSR
	Labelled []bool

	Splits []Split // what the source brings; may be empty
	// Findings are what the reader itself noticed (ids without rows, records it
	// had to interpret); Check adds its own.
	Findings []Finding
}

// Split names the vertices of each role, in the user's order, ascending,
// without repeats.
type Split struct {
	Name             string // "public", "0", "per-class:20/30"
	Train, Val, Test []int32

	// rest: the source names no test vertices; Open takes all others with a label.
	rest bool
}

// Severity of a Finding.
type Severity uint8

// Severities, from harmless to wrong.
const (
	Info    Severity = iota // worth knowing
	Warning                 // training works, perhaps not as meant
	Error                   // training would be wrong: check exits 1
)

// Finding is one thing that check noticed.
type Finding struct {
	Code     string   `json:"code"` // stable name: "duplicate-edges", "self-loops", ...
	Severity Severity `json:"severity"`
	Count    int64    `json:"count"`
	First    string   `json:"first,omitempty"`  // the first example, in the user's ids, with file and row where known
	Effect   string   `json:"effect,omitempty"` // what it does to training
	Remedy   string   `json:"remedy,omitempty"` // what to do about it
}
