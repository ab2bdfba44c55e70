package dataset

import (
	"context"
	"path"
	"slices"
)

// tableHeader is the column names of a text table in the source's folder; nil: none.
func (in *input) tableHeader(name string) []string {
	b, err := openBlob(in.fsys, path.Join(in.path, name), name)
	if err != nil {
		return nil
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return nil
	}
	defer text.Close()
	l, _, _, err := sniff(b.name, text)
	if err != nil {
		return nil
	}
	return l.header
}

// musaeHeaders are the column names of edges by which the layout is known.
var musaeHeaders = [][]string{{"id_1", "id_2"}, {"from", "to"}}

func detectMUSAE(in *input) bool {
	edges, target := in.sidecar([]string{"edges"}, textExts), in.sidecar([]string{"target"}, textExts)
	if edges == "" || target == "" || in.opt.Edges != "" || in.opt.Labels != "" {
		return false
	}
	header := in.tableHeader(edges)
	return slices.ContainsFunc(musaeHeaders, func(h []string) bool { return slices.Equal(h, header) })
}

// readMUSAE reads the layout of Rozemberczki's collections (MUSAE, GitHub, LastFM,
// Deezer): NAME_edges.csv, NAME_target.csv and, except where there are none,
// NAME_features.json. Each undirected edge is stored once. Twitch graphs number
// their vertices by the column new_id of the target file, not by id.
func readMUSAE(ctx context.Context, in *input) (*Raw, error) {
	return readTables(ctx, in, tables{
		format: "musae", undirected: true,
		edges: in.sidecar([]string{"edges"}, textExts), labels: in.sidecar([]string{"target"}, textExts),
		idColumns:    []string{"new_id", "id"},
		labelColumns: []string{"page_type", "mature", "ml_target", "target"},
	}, -1, "")
}

func detectMLGNC(in *input) bool {
	files := in.list()
	for _, f := range []string{"edge_list.csv", "labels.csv", "features.csv", "train.txt", "test.txt"} {
		if !slices.Contains(files, f) {
			return false
		}
	}
	return in.opt.Edges == "" && in.opt.Labels == "" && in.opt.Features == ""
}

// readMLGNC reads the layout of the multi-label sets of Zhao et al. (HumanGo, PCG,
// EukLoc): edge_list.csv with one weight column per kind of link, of which none is
// read unless Options.WeightColumn names it (in HumanGo 95 % of the first are 0; with
// it a GCN falls from 31 to 11 % micro F1); features.csv and labels.csv with one row
// per vertex and one column per feature and class, without header; train.txt and
// test.txt. Without a val.txt every tenth training vertex, from the first, validates.
// Links are undirected, some listed from both ends.
func readMLGNC(ctx context.Context, in *input) (*Raw, error) {
	return readTables(ctx, in, tables{
		format: "mlgnc", undirected: true,
		edges: "edge_list.csv", features: "features.csv", labels: "labels.csv",
		classColumns: true, manyWeights: true, every10th: true,
	}, -1, "")
}
