package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/graph"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// isStore says whether path is a prepared store: a folder with meta.json.
func isStore(path string) bool {
	st, err := os.Stat(filepath.Join(path, "meta.json"))
	return err == nil && st.Mode().IsRegular()
}

// loadData opens the store that c.Data names, or prepares any other source in
// memory. What was changed in a source is told on standard error unless quiet.
func (a *app) loadData(ctx context.Context, c *engine.Config, quiet bool) (*store.Store, error) {
	if isStore(c.Data) {
		if err := notForStores(c); err != nil {
			return nil, err
		}
		st, err := a.openStore(c)
		if err != nil {
			return nil, err
		}
		if err := dataset.Fatal(st.Meta.Findings); err != nil {
			a.warn(fmt.Errorf("%s was prepared with --force: %w", c.Data, firstProblem(err, c.Data)))
		}
		return st, nil
	}
	show := a.stages(quiet)
	defer show.clear()
	raw, err := openSource(ctx, c.Data, dataset.Options{SplitFile: c.SplitFile, Progress: show.bytes("read")})
	if err != nil {
		return nil, err
	}
	if err := dataset.Fatal(dataset.Check(raw)); err != nil {
		return nil, fmt.Errorf("%s would be trained wrongly: %w", c.Data, firstProblem(err, c.Data))
	}
	seed := uint64(0) // the vertex order, and with it the last bits, is the same for all training seeds
	if c.Split != "" {
		seed = c.Seed
	}
	st, err := prepare.Build(ctx, raw, prepare.Options{
		Features: featureChoice(c.Features, raw.Format), Split: c.Split, Seed: seed, Order: c.Order,
		Threads: c.Threads, Partitioner: partitioner, Consume: true, Progress: show.counting(),
	})
	if err != nil {
		return nil, err
	}
	for _, change := range st.Meta.Changes {
		a.note(quiet, "prepared %s: %s", raw.Name, change)
	}
	return st, nil
}

// openStore opens a store, for one graph server of several only its part of it.
func (a *app) openStore(c *engine.Config) (*store.Store, error) {
	if a.share == nil && a.seat == nil {
		return store.Open(c.Data, store.OpenOptions{})
	}
	part, err := store.OpenPart(c.Data, store.OpenOptions{}, kernels.Span{})
	if err != nil {
		return nil, err
	}
	if a.share != nil {
		err = takePart(part, nil, a.share.Rank(), a.share.Size())
		if err == nil && a.share.Rank() == 0 {
			err = nameAll(part)
		}
	} else {
		var split dataset.Split
		if split, err = splitOf(part.Store, c, a.seat.run(0)); err == nil {
			err = takePart(part, split.Train, a.seat.Rank, len(a.seat.Graphs))
		}
	}
	if err != nil {
		return nil, errors.Join(err, part.Close())
	}
	return part.Store, nil
}

// takePart takes the rows of one of so many graph servers.
func takePart(part *store.Part, train []int32, rank, servers int) error {
	cuts := graph.Partition(part.Store, train, servers)
	rows := graph.BlockSpan(&part.Meta, cuts[rank])
	if err := part.Take(rows); err != nil {
		return err
	}
	if edges := part.In.RowPtr[rows.Hi] - part.In.RowPtr[rows.Lo]; edges >= manyEdges {
		collectOften()
	}
	return nil
}

// A graph server with many edges collects garbage whenever it comes to spareShare percent
// of what it holds; Go's default is 100. What it holds in Go's heap are edges, in which
// the collector has nothing to follow, so a collection takes next to no time; and the
// messages of an epoch come and go, which would double the heap.
const (
	manyEdges  = 1 << 21
	spareShare = 25
)

// collectOften does so, unless GOGC says something else.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(spareShare)
	}
}

// nameAll gives a part what the server needs that writes of all vertices: their numbers,
// checked, and their names.
func nameAll(part *store.Part) (err error) {
	all := make([]int32, part.Meta.Vertices)
	for row, v := range part.Order {
		if v < 0 || int(v) >= len(all) {
			return fmt.Errorf("open store %s: row %d is vertex %d of %d: copy or prepare it again", part.Dir, row, v, len(all))
		}
		all[row] = int32(row)
	}
	part.IDs, err = part.Names(all)
	return err
}

// notForStores refuses settings that were decided when the store was written.
func notForStores(c *engine.Config) error {
	var errs []error
	for _, f := range []struct{ flag, value, unset string }{
		{"features", c.Features, ""}, {"order", c.Order, "auto"}, {"split", c.Split, ""}, {"split-file", c.SplitFile, ""},
	} {
		if f.value != f.unset {
			errs = append(errs, fmt.Errorf("--%s=%s: %s is a store, where that is decided already; prepare its source again with this flag", f.flag, f.value, c.Data))
		}
	}
	return usage(errors.Join(errs...))
}

// featureChoice is prepare's name for what --features asks for.
func featureChoice(choice, format string) string {
	switch {
	case choice == "" && format == "planetoid":
		return prepare.RowNormalize
	case choice == "none":
		return prepare.AsGiven
	}
	return choice
}

// firstProblem is the first of several, and where to see the others.
func firstProblem(err error, src string) error {
	list := problems(err)
	if len(list) == 1 {
		return errors.New(list[0])
	}
	return fmt.Errorf("%s (and %d more: dorylus-engine check %s)", list[0], len(list)-1, src)
}

// splitOf picks the split of run number run.
func splitOf(st *store.Store, c *engine.Config, run int) (dataset.Split, error) {
	n := len(st.Splits)
	switch {
	case n == 0:
		return dataset.Split{}, fmt.Errorf("train on %s: it has no split into training, validation and test vertices; make one with %s",
			st.Meta.Name, splitRemedy(st, c))
	case c.SplitIndex >= n:
		return dataset.Split{}, usagef("--split-index=%d: %s has %d splits, 0 to %d", c.SplitIndex, st.Meta.Name, n, n-1)
	case c.SplitIndex >= 0:
		return st.Splits[c.SplitIndex], nil
	}
	return st.Splits[run%n], nil
}

func splitRemedy(st *store.Store, c *engine.Config) string {
	if st.Dir != "" {
		return "prepare SRC --split=random:60/20/20"
	}
	return "--split=random:60/20/20"
}
