package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// Options say how Open reads a source. The zero value detects everything.
type Options struct {
	// Format forces a reader by its name, one of Formats(). "": detect it.
	Format string
	// Name overrides the data set's name; "": the base name of the source.
	Name string
	// FS is where the source and its sidecars are read from, by slash-separated
	// paths. nil: the operating system's files.
	FS fs.FS

	// Progress, if not nil, is told how many bytes of a file have been read, about once
	// a MiB and at its end. It is called by one goroutine at a time for each file.
	Progress func(file string, done, total int64)

	// Vertices declares the number of vertices of an edge list, so that ids are
	// numbers in [0,Vertices) and those without an edge exist too. 0: the vertices
	// are those that the files name.
	Vertices int
	// IDBase is the number of the first vertex where an edge list's ids are row
	// numbers: 0 or 1.
	IDBase int

	// Names says that an edge list's ids are names even where they look like numbers.
	Names bool

	// Edges, Features, Labels and Masks name an edge list's files where they do not
	// lie in its folder under one of the usual names. Masks is a folder of train, val
	// and test files.
	Edges, Features, Labels, Masks string
	// IDColumn and LabelColumn name the columns of a file of labels with a header.
	// "": a column called id or the first one; a column called label or the last one.
	IDColumn, LabelColumn string
	// WeightColumn names the column of weights of an edge list with a header; "none"
	// reads no weights. "": a column called weight, or the third of three.
	WeightColumn string
	// SplitFile is a JSON file of splits as vertex indices in the source's own
	// order; it works with every format and replaces the splits of the source.
	SplitFile string
}

// format is one entry of the table that Open walks.
type format struct {
	name   string
	looks  string // what detect looks for, in words
	detect func(in *input) bool
	read   func(ctx context.Context, in *input) (*Raw, error)
	tables bool // it is an edge list with files beside it, which options may name
}

// formats lists the readers in the order in which detection tries them.
func formats() []format {
	return []format{
		{"planetoid", "a folder with ind.NAME.graph, or that file", detectPlanetoid, readPlanetoid, false},
		{"gnnbench-npz", "a .npz file with adj_data or adj_matrix.data", detectGNNBench, readGNNBench, false},
		{"heterophilous-npz", "a .npz file with edges and node_features", detectHeterophilous, readHeterophilous, false},
		{"pyg", "a .pt file of torch.save, or a folder with processed/data.pt", detectPyG, readPyG, false},
		{"matrixmarket", "a .mtx file (.gz, .zst)", detectMatrixMarket, readMatrixMarket, false},
		{"metis", "a .graph or .mgraph file (.gz, .zst)", detectMETIS, readMETIS, false},
		{"ogb", "a folder with raw/edge.csv.gz or raw/data.npz", detectOGB, readOGB, true},
		{"dgl-csv", "a folder with meta.yaml", detectDGLCSV, readDGLCSV, false},
		{"graphsage", "a folder with PREFIX-G.json", detectGraphSAGE, readGraphSAGE, false},
		{"parquet", "a .parquet file of edges, or a folder with edges.parquet and perhaps nodes.parquet", detectParquet, readParquet, false},
		{"distdgl", "a folder with metadata.json", detectDistDGL, readDistDGL, false},
		{"musae", "a folder with NAME_edges.csv (id_1,id_2 or from,to), NAME_target.csv and perhaps NAME_features.json", detectMUSAE, readMUSAE, true},
		{"mlgnc", "a folder with edge_list.csv, features.csv, labels.csv, train.txt and test.txt", detectMLGNC, readMLGNC, true},
		{"linqs", "a folder with NAME.content and NAME.cites", detectLINQS, readLINQS, false},
		{"geomgcn", "a folder with out1_node_feature_label.txt and out1_graph_edges.txt", detectGeomGCN, readGeomGCN, false},
		{"edgelist", "a .csv, .tsv, .txt or .edges file (.gz, .zst), or a folder with edges.csv or the like and perhaps features, labels and masks", detectEdgeList, readEdgeList, true},
	}
}

// Formats are the names that Options.Format accepts.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return append(names, "synth")
}

// Open reads the data set src: "cora" (built in; "./cora" is a file or folder of
// that name), "synth:..." (see Synth), a file or a folder. The error names the file and the place in it; a source of unknown
// format gets one that lists what was looked for.
func Open(ctx context.Context, src string, opt Options) (*Raw, error) {
	if err := opt.validate(); err != nil {
		return nil, fmt.Errorf("open data set %q: %w", src, err)
	}
	raw, err := open(ctx, src, opt)
	if err != nil {
		return nil, err
	}
	if opt.Name != "" {
		raw.Name = opt.Name
	}
	if opt.SplitFile != "" {
		splits, err := readSplitFile(opt.FS, opt.SplitFile, raw.N)
		if err != nil {
			return nil, err
		}
		raw.Splits = splits
		raw.Files = append(raw.Files, path.Base(filepath.ToSlash(opt.SplitFile)))
	}
	fillRest(raw)
	return raw, nil
}

func (o Options) validate() error {
	var errs []error
	if o.Vertices < 0 || o.Vertices > maxVertices {
		errs = append(errs, fmt.Errorf("%d vertices are outside [0,%d]", o.Vertices, maxVertices))
	}
	if o.IDBase != 0 && o.IDBase != 1 {
		errs = append(errs, fmt.Errorf("ids can start at 0 or 1, not at %d", o.IDBase))
	}
	if o.Format != "" {
		known := Formats()
		found := false
		for _, name := range known {
			found = found || name == o.Format
		}
		if !found {
			errs = append(errs, fmt.Errorf("format %q is unknown%s; known are %s", o.Format, suggest(o.Format, known), strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}

func open(ctx context.Context, src string, opt Options) (*Raw, error) {
	if src == "cora" && opt.Format == "" {
		return Cora()
	}
	if opt.Format == "synth" || opt.Format == "" && isSynth(src) {
		return Synth(ctx, src)
	}
	in, err := newInput(src, opt)
	if err != nil {
		return nil, err
	}
	for _, f := range formats() {
		if opt.Format == f.name || opt.Format == "" && f.detect(in) {
			if !f.tables {
				if err := opt.onlyForTables(f.name); err != nil {
					return nil, fmt.Errorf("open data set %s: %w", src, err)
				}
			}
			return f.read(ctx, in)
		}
	}
	return nil, fmt.Errorf("open data set %s: its format is not recognised: it is none of %s; name the format if the file only has another name", src, lookedFor())
}

// onlyForTables refuses options that a format would ignore.
func (o Options) onlyForTables(format string) error {
	var errs []error
	for _, f := range []struct {
		what string
		set  bool
	}{
		{"a number of vertices", o.Vertices != 0}, {"the first id", o.IDBase != 0}, {"ids as names", o.Names},
		{"a file of edges", o.Edges != ""}, {"a file of features", o.Features != ""}, {"a file of labels", o.Labels != ""},
		{"a folder of masks", o.Masks != ""}, {"the id column", o.IDColumn != ""}, {"the label column", o.LabelColumn != ""},
		{"the weight column", o.WeightColumn != ""},
	} {
		if f.set {
			errs = append(errs, fmt.Errorf("%s is given, but the format %s has its own; leave it out, or name the format edgelist", f.what, format))
		}
	}
	return errors.Join(errs...)
}

// lookedFor is the formats and what each looks for.
func lookedFor() string {
	var all []string
	for _, f := range formats() {
		all = append(all, fmt.Sprintf("%s (%s)", f.name, f.looks))
	}
	return strings.Join(append(all, "synth (a name that starts with synth:)", "cora (built in)"), ", ")
}
