// Package store is the prepared graph: a folder of .npy files and meta.json that
// the engine memory-maps and numpy can read. FORMAT.md describes it.
package store

import (
	"dorylus/engine/dataset"
	"dorylus/kernels"
)

// Version is the version of the format that Write makes; Open reads it and every
// older one.
const Version = 1

// Kinds of Meta.FeatureKind.
const (
	NoFeatures    = "none"
	DenseFeatures = "dense"
	CSRFeatures   = "csr"
)

// Store is a prepared graph: one vertex order, in-edges sorted by source. All
// slices are read-only: they may be memory-mapped.
type Store struct {
	Meta Meta
	Dir  string // where it was opened from; "" if it never was on disk

	// In lists each row's in-edges in store order; Out the same edges by source.
	// Out == In where Meta.Symmetric.
	In, Out *kernels.CSR

	// Order[row] is the user's index of a store row; Rank is its inverse.
	Order, Rank []int32
	IDs         []string // by the user's index; nil: the index itself

	// At most one of Dense (N x F) and Sparse is set, rows in store order.
	Dense  *kernels.Mat
	Sparse *kernels.CSR

	Labels []int32 // by store row, -1: none; nil: unlabelled
	// Multi has the classes of each store row, ascending, where a vertex may have
	// several; Labels is then 0 for the vertices whose classes are known, -1 for the
	// others.
	Multi *kernels.CSR
	// Splits are in store rows, ascending.
	Splits []dataset.Split

	unmap func() error
	part  *Part // it is of; nil: it is a whole store
}

// Meta is meta.json.
type Meta struct {
	Version    int      `json:"version"`
	Name       string   `json:"name"`
	Source     string   `json:"source"` // format and base names of the files read
	Vertices   int      `json:"vertices"`
	Edges      int64    `json:"edges"` // directed in-edges, as stored
	Features   int      `json:"features"`
	Classes    int      `json:"classes"`
	ClassNames []string `json:"class_names,omitempty"`
	// MultiLabel says that a vertex may have several classes.
	MultiLabel bool `json:"multi_label,omitempty"`
	Weighted   bool `json:"weighted"`
	Symmetric  bool `json:"symmetric"` // In equals its transpose, weights included
	// FeatureKind is DenseFeatures, CSRFeatures or NoFeatures.
	FeatureKind string `json:"feature_kind"`
	// Order is the order asked for and used: {"asked":"auto","used":"metis","seed":0,...}.
	Order OrderMeta `json:"order"`
	// BlockRows is the number of rows of a block, the unit of dense computation.
	BlockRows int `json:"block_rows"`
	// Partitions tells how the store was cut when it was prepared for a number of graph
	// servers; nil: it was not.
	Partitions *PartitionsMeta `json:"partitions,omitempty"`
	// Changes is what prepare changed, in words with counts: merged duplicates,
	// added reverse edges, removed self-loops, normalised features.
	Changes  []string          `json:"changes,omitempty"`
	Findings []dataset.Finding `json:"findings,omitempty"`
	// SplitSpec says how the splits were made ("file", "planetoid", "per-class:20/30", ...) and by which seed.
	SplitSpec string `json:"split_spec,omitempty"`
	SplitSeed uint64 `json:"split_seed,omitempty"`
	// SplitNames names the splits, in the order of Store.Splits.
	SplitNames []string `json:"split_names,omitempty"`
	// Files maps each array's file name to its checksum, type and shape.
	Files map[string]FileMeta `json:"files"`
}

// OrderMeta records how the vertex order came about.
type OrderMeta struct {
	Asked    string  `json:"asked"`
	Used     string  `json:"used"`
	Reason   string  `json:"reason,omitempty"`
	Seed     uint64  `json:"seed"`
	Clusters int     `json:"clusters,omitempty"`
	Seconds  float64 `json:"seconds"`
	// EstimatedSeconds and EstimatedBytes (beside the graph) are what the method was
	// expected to take.
	EstimatedSeconds float64 `json:"estimated_seconds,omitempty"`
	EstimatedBytes   int64   `json:"estimated_bytes,omitempty"`
	// IntraFraction is the share of edges whose ends lie in the same cluster.
	IntraFraction float64 `json:"intra_fraction,omitempty"`
}

// FileMeta describes one array file of the store.
type FileMeta struct {
	SHA256 string `json:"sha256"`
	DType  string `json:"dtype"` // numpy's: "<f4", "<i8"
	Shape  []int  `json:"shape"`
}

// BlockRowsFor is the block size for a graph of n vertices: a multiple of 16 rows
// that makes 16 blocks, or as many of 4096 rows as it takes. Each block's part of
// a weight gradient is a matrix of its own, so more blocks cost more sums. It
// depends on n alone, so that bits do not depend on threads, intervals or servers.
func BlockRowsFor(n int) int {
	rows := (n + 15) / 16
	rows = (rows + 15) / 16 * 16
	return min(max(rows, 16), 4096)
}

// Trim lets go of the memory for rows of others that have been read, where the store was
// opened for some of its rows; see Part.
func (s *Store) Trim() {
	if s.part != nil {
		s.part.Trim()
	}
}

// Forget is Trim for the rows taken too: after a look at features, for example, that are
// not needed again.
func (s *Store) Forget() {
	if s.part != nil {
		s.part.Forget()
	}
}

// Close releases the memory maps. The store's slices must not be used after it.
func (s *Store) Close() error {
	if s.unmap == nil {
		return nil
	}
	unmap := s.unmap
	s.unmap = nil
	return unmap()
}
