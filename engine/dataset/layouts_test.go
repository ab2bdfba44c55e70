package dataset

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"dorylus/engine/testkit"
)

func musaeFiles() map[string]string {
	return map[string]string{
		"PT_edges.csv":     "from,to\n0,2\n1,2\n",
		"PT_target.csv":    "id,days,mature,new_id\n900,3,True,2\n901,3,False,0\n902,9,False,1\n",
		"PT_features.json": `{"2": [4], "0": [0, 1], "1": []}`,
	}
}

func mlgncFiles() map[string]string {
	return map[string]string{
		"edge_list.csv": "prot1,prot2,direct,near\n1.0,0.0,0.0,0.5\n2.0,1.0,0.25,0.0\n",
		"features.csv":  "1,2\n3,4\n5,6\n",
		"labels.csv":    "1.0,0.0,1.0\n0.0,1.0,0.0\n1.0,1.0,0.0\n",
		"train.txt":     "Node_idx\n2\n0\n",
		"test.txt":      "Node_idx\n1\n",
	}
}

func linqsFiles() map[string]string {
	return map[string]string{
		"c.content": "35\t0\t1\tA\nx7\t1\t0\tB\n40\t0\t0.5\tA\n",
		"c.cites":   "35\tx7\n40\t35\nghost\t40\n",
	}
}

func geomFiles() map[string]string {
	return map[string]string{
		geomNodes: "node_id\tfeature\tlabel\n1\t0,1,1\t0\n0\t1,0,0\t1\n2\t0,0,0\t1\n",
		geomEdges: "node_id\tnode_id\n0\t2\n1\t2\n",
		"splits/c_split_0.6_0.2_3.npz": zipOf(map[string]string{
			"train_mask": vector("<f4", 3, []float32{1, 0, 0}), "val_mask": vector("<i8", 3, []int64{0, 1, 0}), "test_mask": vector("|b1", 3, []bool{false, false, true})}),
	}
}

func TestMUSAE(t *testing.T) {
	raw, err := openFolder(musaeFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.Format != "musae" || !raw.Undirected || raw.N != 3 || !slices.Equal(raw.Labels, []int32{0, 0, 1}) || !slices.Equal(raw.Classes, []string{"False", "True"}) {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Sparse.Col, []int32{0, 1, 4}) || !slices.Equal(raw.Sparse.RowPtr, []int64{0, 2, 2, 3}) {
		t.Errorf("features %+v", raw.Sparse)
	}
}

func TestMLGNC(t *testing.T) {
	raw, err := openFolder(mlgncFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.Format != "mlgnc" || !raw.Undirected || raw.Weight != nil || raw.Labels != nil || raw.Labelled != nil ||
		!slices.Equal(raw.Multi.Col, []int32{0, 2, 1, 0, 1}) || !slices.Equal(raw.Multi.RowPtr, []int64{0, 2, 3, 5}) {
		t.Errorf("got %+v, classes %+v", raw, raw.Multi)
	}
	if s := raw.Splits[0]; !slices.Equal(s.Val, []int32{2}) || !slices.Equal(s.Train, []int32{0}) || !slices.Equal(s.Test, []int32{1}) {
		t.Errorf("the first entry of train.txt does not validate: %+v", s)
	}
	expectFinding(t, raw.Findings, "weights-not-read", Info, 2, `"direct"`)
	expectFinding(t, raw.Findings, "validation-taken", Info, 1, "")
	raw, err = Open(context.Background(), "d", Options{FS: folder(mlgncFiles()), WeightColumn: "near"})
	if err != nil || !slices.Equal(raw.Weight, []float32{0.5, 0}) {
		t.Errorf("weights %v, %v", raw.Weight, err)
	}
}

func TestHumanGo(t *testing.T) {
	raw, err := Open(context.Background(), testkit.Shared(t, "data", "humango"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	per := map[int]int{}
	for v := range raw.N {
		per[len(raw.classesOf(v))]++
	}
	s := raw.Splits[0]
	if len(per) != 4 || per[1] == 0 || per[4] == 0 || len(s.Train)+len(s.Val) != 1862 || len(s.Val) != 187 || s.Val[1] != 10 || len(s.Test) != 1244 {
		t.Errorf("labels per vertex %v, split %d/%d/%d, validation from %v", per, len(s.Train), len(s.Val), len(s.Test), s.Val[:2])
	}
	if err := Fatal(Check(raw)); err != nil {
		t.Error(err)
	}
}

func TestLINQS(t *testing.T) {
	raw, err := openFolder(linqsFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.IDs, []string{"35", "x7", "40"}) || !slices.Equal(raw.Labels, []int32{0, 1, 0}) || !slices.Equal(raw.Src, []int32{0, 2}) || !slices.Equal(raw.Dst, []int32{1, 0}) {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Sparse.Val, []float32{1, 1, 0.5}) || !slices.Equal(raw.Sparse.Col, []int32{1, 0, 1}) || raw.Sparse.Cols != 2 {
		t.Errorf("features %+v", raw.Sparse)
	}
	expectFinding(t, raw.Findings, "links-left-out", Warning, 1, `record 2 ("ghost", "40") of c.cites`)
}

func TestGeomGCN(t *testing.T) {
	raw, err := openFolder(geomFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.IDs, []string{"1", "0", "2"}) || !slices.Equal(raw.Src, []int32{1, 0}) || !slices.Equal(raw.Dst, []int32{2, 2}) || !raw.Undirected {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Sparse.Col, []int32{1, 2, 0}) || raw.Sparse.Cols != 3 || raw.Sparse.Val != nil {
		t.Errorf("features %+v", raw.Sparse)
	}
	if len(raw.Splits) != 1 || raw.Splits[0].Name != "3" || !slices.Equal(raw.Splits[0].Val, []int32{1}) {
		t.Errorf("splits %+v", raw.Splits)
	}
	files := geomFiles()
	files[geomNodes] = "node_id\tfeature\tlabel\n0\t7,3\t0\n1\t930\t1\n2\t3\t1\n"
	if raw, err = openFolder(files, "d"); err != nil || raw.Sparse.Cols != 931 || !slices.Equal(raw.Sparse.Col, []int32{3, 7, 930, 3}) || raw.IDs != nil {
		t.Errorf("film: %+v, %v", raw, err)
	}
}

// with is files with one of them replaced.
func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

func TestLayoutsRefuse(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		opt   Options
		want  string
	}{
		{"musae: no such vertex", with(musaeFiles(), "PT_target.csv", "id,target\n5000,1\n"), Options{}, `vertex "5000" does not exist`},
		{"musae: bad id", with(musaeFiles(), "PT_edges.csv", "from,to\n0,2\nx,1\n"), Options{}, `line 3: vertex "x" is not a number`},
		{"musae: target is no class", with(musaeFiles(), "PT_target.csv", "id,target\n0,99999999\n1,2\n2,0\n"), Options{}, "is not a class number"},
		{"mlgnc: class value", with(mlgncFiles(), "labels.csv", "1,0,1\n0,0.5,0\n1,1,0\n"), Options{}, "row 1: class 1 has 0.5"},
		{"mlgnc: half missing", with(mlgncFiles(), "labels.csv", "1,0,1\n0,,0\n1,1,0\n"), Options{}, "row 1: 1 of 3 classes are missing"},
		{"mlgnc: ragged", with(mlgncFiles(), "labels.csv", "1,0,1\n0,0\n1,1,0\n"), Options{}, "labels.csv: line 2: 2 columns, but the first line has 3"},
		{"mlgnc: vertex outside", with(mlgncFiles(), "edge_list.csv", "a,b,w,x\n3.0,0.0,1,0\n"), Options{}, "vertex 3 is outside [0,3)"},
		{"mlgnc: no such column", mlgncFiles(), Options{WeightColumn: "nera"}, `no column is called "nera"`},
		{"mlgnc: column is an end", mlgncFiles(), Options{WeightColumn: "prot1"}, "is an end of the edge and its weight"},
		{"linqs: twice", with(linqsFiles(), "c.content", "1\t0\tA\n1\t0\tA\n"), Options{}, `vertex "1" has a line already`},
		{"linqs: ragged", with(linqsFiles(), "c.content", "1\t0\tA\n2\t0\t0\tA\n"), Options{}, "c.content: line 2: 2 features, but the line before has 1"},
		{"linqs: no number", with(linqsFiles(), "c.content", "1\tz\tA\n"), Options{}, `line 1: column 2: "z" is not a number`},
		{"linqs: empty", with(linqsFiles(), "c.content", "\n"), Options{}, "it has no vertex"},
		{"linqs: option", linqsFiles(), Options{Features: "f.npy"}, "a file of features is given, but the format linqs has its own"},
		{"geomgcn: edge to nowhere", with(geomFiles(), geomEdges, "a\tb\n0\t9\n"), Options{}, `edge record 0: vertex "9" has no line`},
		{"geomgcn: columns", with(geomFiles(), geomNodes, "node_id\tfeature\tlabel\n1\t0\n"), Options{}, "line 2: 2 columns"},
		{"geomgcn: feature", with(geomFiles(), geomNodes, "node_id\tfeature\tlabel\n0\t0,x\t1\n"), Options{}, `feature "x" is not a number`},
		{"geomgcn: mask", with(geomFiles(), "splits/c_split_0.6_0.2_3.npz", zipOf(map[string]string{"train_mask": vector("<f4", 2, []float32{1, 0})})), Options{}, "2 mask values for 3 vertices"},
		{"too many columns", map[string]string{"edges.csv": "0,1,2,3\n"}, Options{}, "4 columns; an edge has"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.opt.FS = folder(tc.files)
			_, err := Open(context.Background(), "d", tc.opt)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

func FuzzLayouts(f *testing.F) {
	all := []map[string]string{musaeFiles(), mlgncFiles(), linqsFiles(), geomFiles()}
	for i, files := range all {
		for j, name := range slices.Sorted(maps.Keys(files)) {
			f.Add([]byte(files[name]), byte(i), byte(j))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which, file byte) {
		files := []map[string]string{musaeFiles(), mlgncFiles(), linqsFiles(), geomFiles()}[which%4]
		names := slices.Sorted(maps.Keys(files))
		files[names[int(file)%len(names)]] = string(data)
		survive(t, files, "d", Options{})
	})
}
