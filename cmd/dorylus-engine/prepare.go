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
	"dorylus/engine/prepare"
	"dorylus/engine/store"
)

// prepareFlags are the flags of prepare, those of reading shared with check.
type prepareFlags struct {
	read      readFlags
	out       string
	build     prepare.Options
	features  string
	overwrite bool
	force     bool
	json      bool
}

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
	fs.StringVar(&f.build.Order, "order", prepare.Auto, "vertex order: "+list(engine.Orders))
	fs.StringVar(&f.build.Direction, "direction", prepare.Auto, "auto (by the format), directed, undirected (reverse edges are added), reverse")
	fs.StringVar(&f.build.SelfLoops, "self-loops", prepare.Keep, "keep or remove")
	fs.StringVar(&f.features, "features", "", list(engine.FeatureChoices)+" (default: row-normalize for Planetoid files, else none)")
	fs.StringVar(&f.build.Split, "split", "", "make a split: planetoid, per-class:20/30, random:60/20/20 (default: the source's own)")
	fs.Uint64Var(&f.build.Seed, "seed", 0, "seed of --split and --order")
	fs.IntVar(&f.build.Threads, "threads", 0, "workers; 0: one per core")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace a store that is there already")
	fs.BoolVar(&f.force, "force", false, "write the store even if training would be wrong")
	fs.BoolVar(&f.json, "json", false, "print what was done as one JSON object")
	f.read.add(cmd)
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
	opt := f.build
	opt.Features = featureChoice(f.features, "")
	if err := opt.Validate(); err != nil {
		return usage(err)
	}
	f.read.opt.Progress = a.stages(f.json)
	raw, err := openSource(ctx, src, f.read.opt)
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	raw.Findings = dataset.Check(raw)
	if err := dataset.Fatal(raw.Findings); err != nil && !f.force {
		return fmt.Errorf("prepare %s: %w; --force would write it anyway", src, firstProblem(err, src))
	}
	opt.Features = featureChoice(f.features, raw.Format)
	opt.Partitioner, opt.Consume, opt.Progress = partitioner, true, a.stages(f.json)
	st, err := prepare.Build(ctx, raw, opt)
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	if err := store.Write(ctx, f.out, st, store.WriteOptions{Overwrite: f.overwrite}); err != nil {
		return stoppedEarly(ctx, err)
	}
	p := prepared{st.Meta, f.out, splitSizes(st), time.Since(start).Seconds()}
	if f.json {
		return p.printJSON(a)
	}
	_, err = fmt.Fprint(a.out, p.words())
	return err
}

// stages shows how far prepare is, on a terminal.
func (a *app) stages(quiet bool) func(string, int64, int64) {
	if quiet || a.columns == 0 {
		return nil
	}
	return func(stage string, done, total int64) {
		line := stage
		if stage == "done" {
			line = ""
		} else if total > 0 && done > 0 {
			line += fmt.Sprintf(" %d %%", 100*done/total)
		}
		fmt.Fprintf(a.err, "\r%-20s\r", line)
	}
}

// prepared is what prepare has done.
type prepared struct {
	meta    store.Meta
	dir     string
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
		"store": p.dir, "name": m.Name, "source": m.Source, "vertices": m.Vertices, "edges": m.Edges,
		"features": m.Features, "feature_kind": m.FeatureKind, "classes": m.Classes, "weighted": m.Weighted, "symmetric": m.Symmetric,
		"order": m.Order, "block_rows": m.BlockRows, "splits": p.splits, "split_spec": m.SplitSpec,
		"changes": notNil(m.Changes), "findings": findingsJSON(m.Findings), "seconds": p.seconds,
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
	fmt.Fprintf(&b, "Wrote %s in %.1f s; train with: dorylus-engine --data=%s\n", p.dir, p.seconds, p.dir)
	return b.String()
}
