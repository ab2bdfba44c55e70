package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/order"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
)

// prepareFlags are the flags of prepare, those of reading shared with check.
type prepareFlags struct {
	read      readFlags
	out       string
	as        string // what is written: asStore or asDistDGL
	chunks    int
	memory    bytesFlag
	build     prepare.Options
	features  string
	overwrite bool
	force     bool
	json      bool
}

// What prepare writes.
const (
	asStore   = "store"
	asDistDGL = "distdgl"
)

// readFlags say how a source is read.
type readFlags struct{ opt dataset.Options }

func (r *readFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.opt.Format, "format", "", "read the source as this `FORMAT` instead of detecting it: "+list(dataset.Formats()))
	fs.StringVar(&r.opt.Name, "name", "", "`NAME` of the data set (default: the source's base name)")
	fs.StringVar(&r.opt.SplitFile, "split-file", "", "JSON `FILE` of splits, by vertex number in the source's order")
	fs.StringVar(&r.opt.Edges, "edges-file", "", "`FILE` of an edge list's edges, where the source is a folder")
	fs.StringVar(&r.opt.Features, "features-file", "", "`FILE` of features beside an edge list (.npy, csv)")
	fs.StringVar(&r.opt.Labels, "labels-file", "", "`FILE` of labels beside an edge list (.npy, csv)")
	fs.StringVar(&r.opt.Masks, "masks-file", "", "`FILE` of training, validation and test masks beside an edge list")
	fs.StringVar(&r.opt.WeightColumn, "weight-column", "", "`COLUMN` of edge weights, by name or number; none: read no weights")
	fs.StringVar(&r.opt.IDColumn, "id-column", "", "`COLUMN` of the vertex in a file of labels with a header")
	fs.StringVar(&r.opt.LabelColumn, "label-column", "", "`COLUMN` of the class in a file of labels with a header")
	fs.BoolVar(&r.opt.Names, "names", false, "an edge list's ids are names even where they look like numbers")
	fs.IntVar(&r.opt.Vertices, "vertices", 0, "`N` vertices, numbered, in an edge list; 0: those that the files name")
	fs.IntVar(&r.opt.IDBase, "id-base", 0, "`NUMBER` of the first vertex of an edge list: 0 or 1")
	for _, name := range []string{"format", "name", "split-file", "edges-file", "features-file", "labels-file", "masks-file", "weight-column", "id-column", "label-column", "names", "vertices", "id-base"} {
		inGroup(fs.Lookup(name), groupData)
	}
	complete(cmd, "format", dataset.Formats())
}

func (a *app) prepareCommand() *cobra.Command {
	f := &prepareFlags{}
	cmd := &cobra.Command{
		Use:   "prepare SRC -o DIR [flags]",
		Short: "Import a graph, check it, order its vertices and write a store",
		Long: `Prepare reads a graph in any known format, checks it, decides about duplicate and one-way edges, computes
the vertex order and writes a store: a folder of .npy files and meta.json that training maps into memory.
It says what it changed. A source that training would get wrong is refused.`,
		Example: `  dorylus-engine prepare data/ind.cora -o cora-store
  dorylus-engine prepare edges.csv.gz --direction=undirected --split=random:60/20/20 -o mygraph
  dorylus-engine prepare synth:sbm,vertices=100000,degree=20,classes=10,features=64 -o synthetic`,
		Args: oneArg("a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.out == "" {
				return usagef("prepare: name the folder of the store: -o DIR")
			}
			return a.prepare(cmd.Context(), args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.out, "out", "o", "", "write the store to this new `FOLDER`")
	fs.StringVar(&f.as, "as", asStore, "what to write: store, or distdgl (DistDGL's chunked format, in the source's vertex order, for DGL's tools)")
	fs.IntVar(&f.chunks, "chunks", 1, "with --as=distdgl: cut edges and vertices into so many `CHUNKS`")
	fs.StringVar(&f.build.Order, "order", prepare.Auto, "vertex order: "+list(engine.Orders))
	fs.StringVar(&f.build.Direction, "direction", prepare.Auto, "auto (by the format), directed, undirected (reverse edges are added), reverse")
	fs.StringVar(&f.build.SelfLoops, "self-loops", prepare.Keep, "keep or remove")
	fs.StringVar(&f.features, "features", "", list(engine.FeatureChoices)+" (default: row-normalize for Planetoid files, else none)")
	fs.StringVar(&f.build.Split, "split", "", "make a split: planetoid, per-class:20/30, random:60/20/20 (default: the source's own)")
	fs.Uint64Var(&f.build.Seed, "seed", 0, "seed of --split and --order")
	fs.Var(&f.memory, "memory", "`BYTES` that computing the order may take beside the graph (512MiB, 4GB); where the best method needs more, --order=auto takes a cheaper one; 0: any number")
	fs.IntVar(&f.build.Partitions, "partitions", 0, "report what each of `N` graph servers would get, and let --order=auto look for the smallest cut; a store serves any number of them")
	fs.IntVar(&f.build.BlockRows, "block-rows", 0, "`ROWS` of a block, the least that a task computes: smaller ones give more cores and servers something to do; 0: a sixteenth of the vertices, 4096 at most")
	fs.IntVar(&f.build.Threads, "threads", 0, "workers; 0: one per core")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace a store that is there already")
	fs.BoolVar(&f.force, "force", false, "write the store even if training would be wrong")
	fs.BoolVar(&f.json, "json", false, "print what was done as one JSON object")
	f.read.add(cmd)
	complete(cmd, "as", []string{asStore, asDistDGL})
	complete(cmd, "order", engine.Orders)
	complete(cmd, "direction", []string{prepare.Auto, prepare.Directed, prepare.Undirected, prepare.Reverse})
	complete(cmd, "self-loops", []string{prepare.Keep, prepare.Remove})
	complete(cmd, "features", engine.FeatureChoices)
	return cmd
}

func (a *app) prepare(ctx context.Context, src string, f *prepareFlags) error {
	start := time.Now()
	if f.build.Split != "" && f.read.opt.SplitFile != "" {
		return usagef("--split-file=%s: give either it or --split=%s, not both", f.read.opt.SplitFile, f.build.Split)
	}
	if err := f.checkAs(); err != nil {
		return err
	}
	opt := f.build
	opt.Features, opt.Memory = featureChoice(f.features, ""), int64(f.memory)
	if f.as == asDistDGL {
		opt.Order = order.Natural // what is written is in the source's order
	}
	if err := opt.Validate(); err != nil {
		return usage(err)
	}
	if f.as == asStore {
		if err := store.Free(f.out, f.overwrite); err != nil {
			return err
		}
	}
	show := a.stages(f.json)
	defer show.clear()
	f.read.opt.Progress = show.bytes("read")
	raw, err := openSource(ctx, src, f.read.opt)
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	raw.Findings = dataset.Check(raw)
	if err := dataset.Fatal(raw.Findings); err != nil && !f.force {
		return fmt.Errorf("prepare %s: %w; --force would write it anyway", src, firstProblem(err, src))
	}
	opt.Features = featureChoice(f.features, raw.Format)
	opt.Partitioner, opt.Consume, opt.Progress = partitioner, true, show.counting()
	opt.Announce = func(list []order.Estimate) {
		if f.build.Partitions > 0 || list[0].Seconds >= 1 { // else it is over before it is read
			show.clear()
			a.note(f.json, "%s", estimateText(list))
		}
	}
	st, err := prepare.Build(ctx, raw, opt)
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	if f.as == asDistDGL {
		err = dataset.WriteDistDGL(ctx, f.out, prepare.Raw(st), f.chunks)
	} else {
		err = store.Write(ctx, f.out, st, store.WriteOptions{Overwrite: f.overwrite, Progress: show.writing()})
	}
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	show.clear()
	p := prepared{st.Meta, f.out, f.as, splitSizes(st), time.Since(start).Seconds()}
	if f.json {
		return p.printJSON(a)
	}
	_, err = fmt.Fprint(a.out, p.words())
	return err
}

// checkAs refuses flags that do not go with --as.
func (f *prepareFlags) checkAs() error {
	switch {
	case f.as != asStore && f.as != asDistDGL:
		return usagef("--as=%s: choose one of %s, %s", f.as, asStore, asDistDGL)
	case f.as == asDistDGL && f.build.Partitions != 0:
		return usagef("--partitions=%d: --as=distdgl is cut by DGL's tools: leave it out", f.build.Partitions)
	case f.as == asDistDGL && f.build.BlockRows != 0:
		return usagef("--block-rows=%d: --as=distdgl has no blocks: leave it out", f.build.BlockRows)
	case f.as == asStore && f.chunks != 1:
		return usagef("--chunks=%d: a store is not cut into chunks: add --as=distdgl", f.chunks)
	case f.as == asDistDGL && f.chunks < 1:
		return usagef("--chunks=%d: give 1 or more", f.chunks)
	case f.as == asDistDGL && f.overwrite:
		return usagef("--overwrite: only a store is replaced: name a new folder for --as=distdgl")
	case f.as == asDistDGL && f.build.Order != prepare.Auto && f.build.Order != order.Natural:
		return usagef("--order=%s: --as=distdgl keeps the source's order: leave it out", f.build.Order)
	}
	return nil
}

// prepared is what prepare has done.
type prepared struct {
	meta    store.Meta
	dir     string
	as      string
	splits  []splitSize
	seconds float64
}

type splitSize struct {
	Name  string `json:"name"`
	Train int    `json:"train"`
	Val   int    `json:"val"`
	Test  int    `json:"test"`
}

func splitSizes(st *store.Store) []splitSize {
	sizes := make([]splitSize, len(st.Splits))
	for i, s := range st.Splits {
		sizes[i] = splitSize{s.Name, len(s.Train), len(s.Val), len(s.Test)}
	}
	return sizes
}

func (p *prepared) printJSON(a *app) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	m := &p.meta
	return enc.Encode(map[string]any{
		p.as: p.dir, "name": m.Name, "source": m.Source, "vertices": m.Vertices, "edges": m.Edges,
		"features": m.Features, "feature_kind": m.FeatureKind, "classes": m.Classes, "weighted": m.Weighted, "symmetric": m.Symmetric,
		"order": m.Order, "block_rows": m.BlockRows, "splits": p.splits, "split_spec": m.SplitSpec,
		"partitions": m.Partitions, "changes": notNil(m.Changes), "findings": findingsJSON(m.Findings), "seconds": p.seconds,
	})
}

// notNil is list, [] in JSON if it is empty.
func notNil(list []string) []string { return append([]string{}, list...) }

func (p *prepared) words() string {
	var b strings.Builder
	m := &p.meta
	b.WriteString(findingsText(m.Findings))
	for _, c := range m.Changes {
		fmt.Fprintf(&b, "Changed: %s\n", c)
	}
	fmt.Fprintf(&b, "%s: %d vertices, %d edges, %d features (%s), %d classes; read from %s\n",
		m.Name, m.Vertices, m.Edges, m.Features, m.FeatureKind, m.Classes, m.Source)
	fmt.Fprintf(&b, "Order: %s (%s)", m.Order.Used, m.Order.Reason)
	if m.Order.Clusters > 0 {
		fmt.Fprintf(&b, ", %d clusters that hold %.1f %% of the edges", m.Order.Clusters, 100*m.Order.IntraFraction)
	}
	b.WriteByte('\n')
	for _, s := range p.splits {
		fmt.Fprintf(&b, "Split %q: %d training, %d validation, %d test vertices\n", s.Name, s.Train, s.Val, s.Test)
	}
	if len(p.splits) == 0 {
		b.WriteString("No split: prepare again with --split, for example --split=random:60/20/20, before training\n")
	}
	if m.Partitions != nil {
		b.WriteString(partitionsText(m.Partitions))
	}
	if p.as == asDistDGL {
		if len(p.splits) > 1 {
			fmt.Fprintf(&b, "DistDGL's format holds one split: wrote %q\n", p.splits[0].Name)
		}
		fmt.Fprintf(&b, "Wrote %s in %.1f s, in DistDGL's chunked format: metadata.json names the files\n", p.dir, p.seconds)
		return b.String()
	}
	fmt.Fprintf(&b, "Wrote %s in %.1f s; train with: dorylus-engine --data=%s\n", p.dir, p.seconds, p.dir)
	return b.String()
}
