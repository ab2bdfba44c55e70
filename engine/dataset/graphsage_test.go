package dataset

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func sageFiles() map[string]string {
	return map[string]string{
		"toy-G.json": `{"directed": false, "graph": {"name": "x"}, "nodes": [{"id": "b", "test": false, "val": true}, {"id": "a", "val": false, "test": false, "feature": [1]}, {"id": "c", "test": true}],
			"links": [{"source": 0, "target": 1, "test_removed": false}, {"source": 2, "target": 1}], "multigraph": false}`,
		"toy-id_map.json":    `{"a": 0, "b": 1, "c": 2}`,
		"toy-class_map.json": `{"c": 1, "a": 0}`,
		"toy-feats.npy":      npyBytes("<f8", "(3, 1)", []float64{1, 2, 3}),
	}
}

func TestGraphSAGE(t *testing.T) {
	raw, err := openFolder(sageFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.Name != "toy" || !raw.Undirected || !slices.Equal(raw.IDs, []string{"a", "b", "c"}) || !slices.Equal(raw.Src, []int32{1, 2}) || !slices.Equal(raw.Dst, []int32{0, 0}) || raw.Weight != nil {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Labels, []int32{0, -1, 1}) || !slices.Equal(raw.Dense.Host, []float32{1, 2, 3}) {
		t.Errorf("labels %v, features %v", raw.Labels, raw.Dense.Host)
	}
	if s := raw.Splits[0]; !slices.Equal(s.Train, []int32{0}) || !slices.Equal(s.Val, []int32{1}) || !slices.Equal(s.Test, []int32{2}) {
		t.Errorf("split %+v", s)
	}
	files := sageFiles()
	files["toy-G.json"] = `{"directed": true, "links": [{"source": "c", "target": "a", "weight": 0.5}, {"source": "a", "target": "b"}], "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}`
	files["toy-class_map.json"] = `{"c": [1, 1], "a": [0, 1]}`
	delete(files, "toy-id_map.json")
	if raw, err = openFolder(files, "d"); err != nil {
		t.Fatal(err)
	}
	if raw.Undirected || !slices.Equal(raw.Src, []int32{2, 0}) || !slices.Equal(raw.Weight, []float32{0.5, 1}) || !slices.Equal(raw.Multi.Col, []int32{1, 0, 1}) || !slices.Equal(raw.Labelled, []bool{true, false, true}) || raw.Splits != nil {
		t.Errorf("got %+v, %+v", raw, raw.Multi)
	}
}

func TestGraphSAGERefuses(t *testing.T) {
	for _, tc := range []struct{ name, file, text, want string }{
		{"json", "toy-G.json", `{"nodes": [{"id": 1}`, "toy-G.json: byte"},
		{"list", "toy-G.json", `{"nodes": 7}`, "7 where a list must start"},
		{"no id", "toy-G.json", `{"nodes": [{"val": true}]}`, "vertex 0 has no id"},
		{"no nodes", "toy-G.json", `{"links": []}`, "it has no nodes"},
		{"map size", "toy-id_map.json", `{"a": 0}`, "3 vertices, but the id_map has 1"},
		{"row", "toy-id_map.json", `{"a": 0, "b": 0, "c": 2}`, `has row 0, which is not a row of its own`},
		{"row outside", "toy-id_map.json", `{"a": -1}`, `id "a": row -1 is outside`},
		{"unknown id", "toy-id_map.json", `{"a": 0, "b": 1, "d": 2}`, `id "c" is not in the id_map`},
		{"link", "toy-G.json", `{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "links": [{"source": 9, "target": 0}]}`, `link 0: vertex "9" is not among its nodes`},
		{"half a link", "toy-G.json", `{"links": [{"source": 9}]}`, "link 0 has no source or no target"},
		{"class", "toy-class_map.json", `{"z": 1}`, `vertex "z" is not in the graph`},
		{"classes", "toy-class_map.json", `{"a": [1, 0], "b": [1]}`, `vertex "b" has 1 classes`},
		{"mixed", "toy-class_map.json", `{"a": [1, 0], "b": 1}`, `vertex "b" has 1, but those before it have lists`},
		{"features", "toy-feats.npy", npyBytes("<f8", "(2, 1)", []float64{1, 2}), "2 rows of features for 3 vertices"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openFolder(with(sageFiles(), tc.file, tc.text), "d")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

func FuzzGraphSAGE(f *testing.F) {
	names := slices.Sorted(maps.Keys(sageFiles()))
	for i, name := range names {
		f.Add([]byte(sageFiles()[name]), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		survive(t, with(sageFiles(), names[int(which)%len(names)], string(data)), "d", Options{})
	})
}
