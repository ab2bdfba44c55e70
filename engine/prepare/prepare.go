// Package prepare turns a raw graph into a store: it decides about duplicates,
// reverse edges and self-loops, computes the one vertex order, and puts edges,
// features, labels and splits into it. Everything happens in memory; store.Write
// writes the result.
//
// # Memory
//
// Beside the raw graph (8 bytes an edge record, 12 with weights) Build holds at
// its peak two copies of the edges in CSR form: 8 bytes a directed edge (16 with
// weights) for a symmetric graph, 12 (24) for one that is not or whose reverse
// edges are added, and one copy of the features. With Options.Consume the raw
// arrays are let go as soon as they have been used, before that peak. Measured
// with Consume, 233,000 vertices and an undirected source: the whole process stays
// below 668 MiB for 57 million directed edges and 1,310 MiB for 114 million, 12.5
// bytes an edge; with 602 dense features 1,324 MiB for 57 million.
package prepare

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"dorylus/engine/dataset"
	"dorylus/engine/order"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// Directions of Options.Direction.
const (
	Auto       = "auto"
	Directed   = "directed"
	Undirected = "undirected"
	Reverse    = "reverse"
)

// Self-loop policies of Options.SelfLoops.
const (
	Keep   = "keep"
	Remove = "remove"
)

// Feature transformations of Options.Features.
const (
	AsGiven      = ""
	RowNormalize = "row-normalize"
	Standardize  = "standardize"
	Identity     = "identity"
)

// Done is the last stage that Options.Progress is told.
const Done = "done"

// Options says what prepare does to a graph. The zero value keeps what the
// source says and picks the order by itself.
type Options struct {
	// Direction is auto (default: reverse edges are added where the source's
	// format is undirected), directed (the records as they are), undirected
	// (reverse edges are added) or reverse (messages flow against the records).
	Direction string
	// SelfLoops is keep (default) or remove.
	SelfLoops string
	// Features is "" (as given), row-normalize (each row divided by the sum of
	// its absolute values), standardize (each column to mean 0 and deviation 1)
	// or identity (one column per vertex, replacing what the source has).
	Features string
	// Split is a specification for dataset.MakeSplit, such as "planetoid",
	// "per-class:20/30" or "random:60/20/20"; "": the splits of the source.
	Split string
	// Seed seeds Split and Order.
	Seed uint64
	// Order is auto (default), metis, lpa, stream, ldg, fennel, degree, natural
	// or hash.
	Order string
	// Partitioner is METIS, where it is linked; nil: none.
	Partitioner order.Partitioner
	// Memory is how many bytes computing the order may take beside the graph;
	// 0, the default, does not limit it.
	Memory int64
	// Partitions, if not 0, is for how many graph servers the store is: auto then picks
	// the order that cuts the fewest edges, and Meta.Partitions tells what each server
	// gets. Any other number can be had from the same store.
	Partitions int
	// BlockRows is the number of rows of a block, a multiple of 16 up to MaxBlockRows; 0:
	// store.BlockRowsFor. A task is at least a block, so smaller ones occupy more cores
	// and cost more sums of gradients; another size rounds these sums otherwise.
	BlockRows int
	// Announce, if not nil, is told what computing the order is expected to take,
	// before it starts: the methods that are run, then better ones that are not.
	Announce func([]order.Estimate)
	// Threads is the number of workers; 0: one per core. It changes no bit.
	Threads int
	// Consume lets Build drop raw's arrays as soon as it has used them and keep
	// what it need not copy. raw must not be used afterwards.
	Consume bool
	// Progress, if not nil, is told how far a stage is; total may be 0 where it
	// is not known. It is called from the goroutine that called Build.
	Progress func(stage string, done, total int64)
}

// MaxBlockRows is the largest size of a block that can be asked for.
const MaxBlockRows = 1 << 16

// WithDefaults is opt with every zero field replaced by what it stands for.
func (opt Options) WithDefaults() Options {
	if opt.Direction == "" {
		opt.Direction = Auto
	}
	if opt.SelfLoops == "" {
		opt.SelfLoops = Keep
	}
	if opt.Order == "" {
		opt.Order = order.Auto
	}
	if opt.Threads == 0 {
		opt.Threads = runtime.GOMAXPROCS(0)
	}
	if opt.Progress == nil {
		opt.Progress = func(string, int64, int64) {}
	}
	return opt
}

// Validate reports the first option, defaults filled in, that has no meaning.
func (opt Options) Validate() error {
	opt = opt.WithDefaults()
	for _, f := range []struct {
		name, value string
		known       []string
	}{
		{"direction", opt.Direction, []string{Auto, Directed, Undirected, Reverse}},
		{"self-loops", opt.SelfLoops, []string{Keep, Remove}},
		{"features", opt.Features, []string{AsGiven, RowNormalize, Standardize, Identity}},
		{"order", opt.Order, order.Methods},
	} {
		if !slices.Contains(f.known, f.value) {
			return fmt.Errorf("unknown %s %q: use one of %q", f.name, f.value, f.known)
		}
	}
	if opt.Memory < 0 {
		return fmt.Errorf("%d bytes of memory for the order: use 0 for no limit, or a positive number", opt.Memory)
	}
	if opt.Partitions < 0 || opt.Partitions > maxPartitions {
		return fmt.Errorf("%d partitions: use 0 for none, or 1 to %d", opt.Partitions, maxPartitions)
	}
	if opt.BlockRows%16 != 0 || opt.BlockRows < 0 || opt.BlockRows > MaxBlockRows {
		return fmt.Errorf("blocks of %d rows: use 0 for a size by the number of vertices, or a multiple of 16 up to %d", opt.BlockRows, MaxBlockRows)
	}
	if opt.Threads < 0 {
		return fmt.Errorf("%d threads: use 0 for one per core, or a positive number", opt.Threads)
	}
	return nil
}

// Build prepares raw. The result is in memory only; its slices belong to the
// caller and are shared with raw where Options.Consume allows it.
func Build(ctx context.Context, raw *dataset.Raw, opt Options) (*store.Store, error) {
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", raw.Name, err)
	}
	s, err := build(ctx, raw, opt.WithDefaults())
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", raw.Name, err)
	}
	return s, nil
}

func build(ctx context.Context, raw *dataset.Raw, opt Options) (*store.Store, error) {
	s := &store.Store{IDs: raw.IDs}
	if raw.IDs != nil && len(raw.IDs) != raw.N {
		return nil, fmt.Errorf("%d vertex names for %d vertices", len(raw.IDs), raw.N)
	}
	if err := checkFeatures(raw); err != nil {
		return nil, err
	}
	classes, err := countClasses(raw)
	if err != nil {
		return nil, err
	}

	opt.Progress("edges", 0, int64(len(raw.Src)))
	weighted := raw.Weight != nil
	c, err := canonicalise(raw, opt)
	if err != nil {
		return nil, err
	}
	release(c.in)
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	opt.Progress("order", 0, int64(c.in.Edges()))
	ord, err := order.Compute(ctx, order.Graph{In: c.in, Out: c.out}, order.Options{
		Method: opt.Order, Seed: opt.Seed, Threads: opt.Threads, Partitioner: opt.Partitioner, Memory: opt.Memory,
		Partitions: opt.Partitions, Announce: opt.Announce,
		Progress: func(done, total int64) { opt.Progress("order", done, total) },
	})
	if err != nil {
		return nil, fmt.Errorf("order vertices: %w", err)
	}
	s.Order, s.Rank = ord.Order, ord.Rank

	opt.Progress("sort", 0, int64(c.in.Edges()))
	s.In, s.Out = inOrder(c, ord, opt.Threads)
	changes := c.changes
	c = nil
	release(s.In)
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	opt.Progress("features", 0, int64(raw.N))
	noted, err := gatherFeatures(s, raw, opt)
	if err != nil {
		return nil, err
	}
	changes = append(changes, noted...)
	if opt.Consume {
		raw.Dense, raw.Sparse = nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	opt.Progress("splits", 0, 0)
	if raw.Labels != nil {
		s.Labels = make([]int32, raw.N)
		for r, v := range s.Order {
			s.Labels[r] = raw.Labels[v]
		}
	}
	if raw.Multi != nil {
		gatherMulti(s, raw)
	}
	spec, err := gatherSplits(s, raw, classes, opt)
	if err != nil {
		return nil, err
	}

	s.Meta = store.Meta{
		Version: store.Version, Name: raw.Name, Source: describeSource(raw),
		Vertices: raw.N, Edges: int64(s.In.Edges()),
		Classes: classes, ClassNames: raw.Classes, MultiLabel: raw.Multi != nil,
		Weighted: weighted, Symmetric: s.In == s.Out, FeatureKind: store.NoFeatures,
		Order: store.OrderMeta{
			Asked: opt.Order, Used: ord.Used, Reason: ord.Reason, Seed: opt.Seed,
			Clusters: ord.Clusters, Seconds: ord.Seconds, IntraFraction: ord.Quality.Intra,
			EstimatedSeconds: ord.Estimate.Seconds, EstimatedBytes: ord.Estimate.Bytes,
		},
		BlockRows: cmp.Or(opt.BlockRows, store.BlockRowsFor(raw.N)),
		Changes:   changes, Findings: raw.Findings,
		SplitSpec: spec, SplitNames: s.Meta.SplitNames,
	}
	if opt.Split != "" {
		s.Meta.SplitSeed = opt.Seed
	}
	switch {
	case s.Dense != nil:
		s.Meta.FeatureKind, s.Meta.Features = store.DenseFeatures, s.Dense.Cols
	case s.Sparse != nil:
		s.Meta.FeatureKind, s.Meta.Features = store.CSRFeatures, s.Sparse.Cols
	}
	if opt.Partitions > 0 {
		opt.Progress("partitions", 0, 0)
		if s.Meta.Partitions, err = Partitions(ctx, s, opt.Partitions); err != nil {
			return nil, err
		}
	}
	opt.Progress(Done, int64(raw.N), int64(raw.N))
	return s, nil
}

// inOrder renumbers the graph into the vertex order.
func inOrder(c *canonical, ord *order.Result, threads int) (in, out *kernels.CSR) {
	symmetric := c.symmetric()
	if ord.Natural() {
		return c.in, c.out
	}
	c.in = nil
	in = transpose(c.out, ord.Order, ord.Rank, threads)
	if symmetric {
		return in, in
	}
	c.out = nil
	release(in)
	return in, transpose(in, nil, nil, threads)
}

// release gives memory that is no longer used back at once if the graph is big:
// the next stage allocates arrays of the same size, and a collector that waits
// for the heap to double would hold both.
func release(g *kernels.CSR) {
	if g.Edges() > 8<<20 {
		debug.FreeOSMemory()
	}
}

// describeSource is the format and the base names of the files.
func describeSource(raw *dataset.Raw) string {
	source := raw.Format
	for i, f := range raw.Files {
		if i == 8 {
			return fmt.Sprintf("%s and %d more", source, len(raw.Files)-i)
		}
		if i == 0 {
			source += ":"
		}
		source += " " + filepath.Base(f)
	}
	return source
}
