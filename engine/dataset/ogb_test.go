package dataset

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
)

func ogbFiles() map[string]string {
	return map[string]string{
		"raw/edge.csv.gz":           gz("0,1\n2,0\n2,1\n"),
		"raw/num-node-list.csv.gz":  gz("4\n"),
		"raw/num-edge-list.csv.gz":  gz("3\n"),
		"raw/node-feat.csv.gz":      gz("0.5,1\n2,-1\n0,0\n1e-3,7\n"),
		"raw/node-label.csv.gz":     gz("3\n0\nnan\n1\n"),
		"raw/node_year.csv.gz":      gz("2013\n2014\n2015\n2016\n"),
		"split/time/train.csv.gz":   gz("3\n0\n"),
		"split/time/valid.csv.gz":   gz("1\n"),
		"split/time/test.csv.gz":    gz(""),
		"split/random/train.csv.gz": gz("1\n"),
	}
}

func ogbBinaryFiles() map[string]string {
	return map[string]string{
		"raw/data.npz": zipOf(map[string]string{
			"edge_index":     npyBytes("<i8", "(2, 3)", []int64{0, 2, 2, 1, 0, 1}),
			"num_nodes_list": vector("<i8", 1, []int64{4}), "num_edges_list": vector("<i8", 1, []int64{3}),
			"node_feat": npyBytes("<f2", "(4, 1)", []uint16{0x3c00, 0, 0x4000, 0xbc00}),
		}),
		"raw/node-label.npz":      zipOf(map[string]string{"node_label": npyBytes("<f4", "(4, 1)", []float32{1, 0, 2, -1})}),
		"split/time/train.csv.gz": gz("0\n"),
	}
}

func TestOGB(t *testing.T) {
	raw, err := openFolder(ogbFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.N != 4 || raw.Undirected || !slices.Equal(raw.Src, []int32{0, 2, 2}) || !slices.Equal(raw.Dst, []int32{1, 0, 1}) || !slices.Equal(raw.Labels, []int32{3, 0, -1, 1}) {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Dense.Row(3), []float32{1e-3, 7}) || raw.Dense.Rows != 4 {
		t.Errorf("features %+v", raw.Dense)
	}
	if len(raw.Splits) != 2 || raw.Splits[1].Name != "time" || !slices.Equal(raw.Splits[1].Train, []int32{0, 3}) || !slices.Equal(raw.Splits[0].Train, []int32{1}) {
		t.Errorf("splits %+v", raw.Splits)
	}
	expectFinding(t, raw.Findings, "direction-unknown", Warning, 1, "d")

	raw, err = openFolder(ogbBinaryFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.Src, []int32{0, 2, 2}) || !slices.Equal(raw.Dst, []int32{1, 0, 1}) || !slices.Equal(raw.Labels, []int32{1, 0, 2, -1}) || !slices.Equal(raw.Dense.Host, []float32{1, 0, 2, -1}) {
		t.Errorf("binary: %+v, features %+v", raw, raw.Dense)
	}
}

func TestOGBUndirectedByName(t *testing.T) {
	for name, want := range map[string]bool{"products": true, "ogbn_proteins": true, "ogbn-arxiv": false, "papers100M": false} {
		m := folder(nil)
		for f, file := range folder(ogbFiles()) {
			m[name+f[1:]] = file
		}
		raw, err := Open(context.Background(), name, Options{FS: m})
		if err != nil || raw.Undirected != want || len(raw.Findings) != 0 {
			t.Errorf("%s: undirected %v, findings %v, %v", name, raw.Undirected, raw.Findings, err)
		}
	}
}

func TestOGBSeveralLabels(t *testing.T) {
	files := ogbFiles()
	files["raw/node-label.csv.gz"] = gz("0,1,1\n0,0,0\nnan,nan,nan\n1,0,0\n")
	raw, err := openFolder(files, "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.Labels != nil || !slices.Equal(raw.Multi.Col, []int32{1, 2, 0}) || !slices.Equal(raw.Labelled, []bool{true, true, false, true}) {
		t.Errorf("got %+v, %v", raw.Multi, raw.Labelled)
	}
}

func TestOGBRefuses(t *testing.T) {
	for _, tc := range []struct{ name, file, text, want string }{
		{"vertex", "raw/edge.csv.gz", gz("0,4\n"), "vertex 4 is outside [0,4), the range that num-node-list.csv.gz gives"},
		{"edges", "raw/num-edge-list.csv.gz", gz("9\n"), "3 edges, but raw/num-edge-list.csv.gz says 9"},
		{"graphs", "raw/num-node-list.csv.gz", gz("4\n5\n"), "it holds several graphs"},
		{"count", "raw/num-node-list.csv.gz", gz("x\n"), `"x" is not a number`},
		{"rows", "raw/node-feat.csv.gz", gz("1\n2\n"), "2 rows, but there are 4 vertices"},
		{"label", "raw/node-label.csv.gz", gz("1\n2\n3\n9999999\n"), "is not a class number"},
		{"split", "split/time/train.csv.gz", gz("1\n4\n"), "split/time/train.csv.gz: entry 1: vertex 4 is outside [0,4)"},
		{"split text", "split/time/train.csv.gz", gz("1\nz\n"), `line 2: vertex "z" is not a number`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openFolder(with(ogbFiles(), tc.file, tc.text), "d")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
	files := ogbBinaryFiles()
	files["raw/data.npz"] = zipOf(map[string]string{"edge_index": npyBytes("<i8", "(3, 2)", []int64{0, 2, 2, 1, 0, 1}), "num_nodes_list": vector("<i8", 1, []int64{4})})
	if _, err := openFolder(files, "d"); err == nil || !strings.Contains(err.Error(), "shape [3 2] is not 2 x edges") {
		t.Errorf("binary: %v", err)
	}
	files = ogbFiles()
	delete(files, "raw/num-node-list.csv.gz")
	if _, err := openFolder(files, "d"); err == nil || !strings.Contains(err.Error(), "num-node-list.csv.gz is missing") {
		t.Errorf("without the count: %v", err)
	}
}

func dglFiles() map[string]string {
	return map[string]string{
		"meta.yaml": "dataset_name: mini\nedge_data:\n- file_name: e.csv\nnode_data:\n- file_name: n.csv\n",
		"n.csv":     "node_id,label,train_mask,val_mask,test_mask,feat\na,1,True,False,False,\"0.5, 1\"\nb,0,False,True,False,\"2,3\"\nc,0,0,0,1.0,\"4,5\"\n",
		"e.csv":     "src_id,dst_id,weight,feat\na,b,0.5,\"1,2\"\nc,a,2,\"3,4\"\n",
	}
}

func TestDGLCSV(t *testing.T) {
	raw, err := openFolder(dglFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.Name != "mini" || !slices.Equal(raw.IDs, []string{"a", "b", "c"}) || !slices.Equal(raw.Src, []int32{0, 2}) || !slices.Equal(raw.Dst, []int32{1, 0}) ||
		!slices.Equal(raw.Weight, []float32{0.5, 2}) || !slices.Equal(raw.Labels, []int32{1, 0, 0}) || raw.Undirected {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Dense.Host, []float32{0.5, 1, 2, 3, 4, 5}) {
		t.Errorf("features %v", raw.Dense.Host)
	}
	if s := raw.Splits[0]; !slices.Equal(s.Train, []int32{0}) || !slices.Equal(s.Val, []int32{1}) || !slices.Equal(s.Test, []int32{2}) {
		t.Errorf("split %+v", s)
	}
	files := map[string]string{
		"meta.yaml": "dataset_name: m\nseparator: ';'\nedge_data: [{file_name: e.csv, src_id_field: from, dst_id_field: to}]\nnode_data: [{file_name: n.csv, node_id_field: key}]\n",
		"n.csv":     "key;label;x;y\n0;0,1,1;1;2\n1;1,0,0;3;4\n",
		"e.csv":     "to;from\n1;0\n",
	}
	if raw, err = openFolder(files, "d"); err != nil {
		t.Fatal(err)
	}
	if raw.IDs != nil || !slices.Equal(raw.Multi.Col, []int32{1, 2, 0}) || raw.Src[0] != 0 || raw.Dst[0] != 1 || !slices.Equal(raw.Dense.Host, []float32{1, 2, 3, 4}) || raw.Splits != nil {
		t.Errorf("got %+v, %+v", raw, raw.Multi)
	}
}

func TestDGLCSVRefuses(t *testing.T) {
	for _, tc := range []struct{ name, file, text, want string }{
		{"yaml", "meta.yaml", "node_data: [", "read meta.yaml:"},
		{"kinds", "meta.yaml", "node_data: [{file_name: n.csv}, {file_name: m.csv}]\nedge_data: [{file_name: e.csv}]\n", "2 files of vertices and 1 of edges"},
		{"outside", "meta.yaml", "node_data: [{file_name: ../n.csv}]\nedge_data: [{file_name: e.csv}]\n", `"../n.csv" is not a file in the folder`},
		{"graphs", "meta.yaml", "node_data: [{file_name: n.csv}]\nedge_data: [{file_name: e.csv}]\ngraph_data: {file_name: g.csv}\n", "several graphs"},
		{"missing", "meta.yaml", "node_data: [{file_name: nn.csv}]\nedge_data: [{file_name: e.csv}]\n", "read nn.csv: file does not exist"},
		{"id column", "n.csv", "id,label\na,1\n", `no column is called "node_id"`},
		{"twice", "n.csv", "node_id,label\na,1\na,2\n", `n.csv: line 3: vertex "a" has a line already`},
		{"mask", "n.csv", "node_id,train_mask\na,2\n", `mask value "2" is neither`},
		{"feature", "n.csv", "node_id,city\na,Oslo\n", `column city: "Oslo" is not a number`},
		{"width", "n.csv", "node_id,f\na,\"1,2\"\nb,\"1\"\n", "column f: 1 values, but the first line has 2"},
		{"edge", "e.csv", "src_id,dst_id\na,z\n", `edge record 0: vertex "z" has no line in n.csv`},
		{"edge columns", "e.csv", "src,dst\na,b\n", `no columns are called "src_id" and "dst_id"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openFolder(with(dglFiles(), tc.file, tc.text), "d")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

func TestLIBSVM(t *testing.T) {
	files := map[string]string{"edges.csv": "0,1\n", "features.svm": "1 1:0.5 3:2 # comment\n-1 2:1\n+0 qid:7 1:1\n"}
	raw, err := openFolder(files, "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.N != 3 || raw.Sparse.Cols != 3 || !slices.Equal(raw.Sparse.Col, []int32{0, 2, 1, 0}) || !slices.Equal(raw.Sparse.Val, []float32{0.5, 2, 1, 1}) || !slices.Equal(raw.Labels, []int32{1, -1, 0}) {
		t.Errorf("got %+v, features %+v", raw, raw.Sparse)
	}
	files["features.svm"] = "0,2 0:1\n1 4:1\n"
	if raw, err = openFolder(files, "d"); err != nil || raw.Sparse.Cols != 5 || !slices.Equal(raw.Multi.Col, []int32{0, 2, 1}) {
		t.Errorf("numbered from 0: %+v, %v", raw, err)
	}
	files["labels.csv"] = "1\n0\n"
	if raw, err = openFolder(files, "d"); err != nil || raw.Multi != nil || !slices.Equal(raw.Labels, []int32{1, 0}) {
		t.Errorf("labels of their own file: %+v, %v", raw, err)
	}
	for text, want := range map[string]string{
		"1 2\n": `line 1: "2" is not column:value`, "0\n1 1:x\n": `line 2: "1:x": the value`, "z 1:1\n": `label "z"`,
		"1 -4:1\n": `"-4:1" is not`, "0 1:1\n1 999999999:1\n": "999999999 columns", "\n": "no row of features",
	} {
		if _, err := openFolder(map[string]string{"edges.csv": "0,1\n", "features.svm": text}, "d"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzFolders(f *testing.F) {
	all := func() []map[string]string {
		return []map[string]string{ogbFiles(), ogbBinaryFiles(), dglFiles(), {"edges.csv": "0,1\n", "features.svm": "1 1:0.5\n0 2:1\n"}}
	}
	for i, files := range all() {
		for j, name := range slices.Sorted(maps.Keys(files)) {
			f.Add([]byte(files[name]), byte(i), byte(j))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which, file byte) {
		files := all()[which%4]
		names := slices.Sorted(maps.Keys(files))
		files[names[int(file)%len(names)]] = string(data)
		survive(t, files, "d", Options{})
	})
}
