package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallGraph are the files of a graph of six vertices and two classes, as an edge
// list with features, labels and splits.
func smallGraph(name string) []string {
	return []string{
		name + "/edges.csv", "src,dst\n0,1\n1,2\n2,0\n3,4\n4,5\n5,3\n0,3\n",
		name + "/features.csv", "1,0\n1,0\n1,1\n0,1\n0,1\n0,2\n",
		name + "/labels.csv", "0\n0\n0\n1\n1\n1\n",
	}
}

// with is smallGraph with another content for one of its files.
func with(name, file, content string) []string {
	files := smallGraph(name)
	for i := 0; i < len(files); i += 2 {
		if files[i] == name+"/"+file {
			files[i+1] = content
			return files
		}
	}
	return append(files, name+"/"+file, content)
}

const smallSplit = "--split=per-class:1/1"

func TestSmallGraphIsGood(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, smallGraph("g")...)
	m := object(t, mustRun(t, dir, "--data=g", smallSplit, "--json", "--epochs=2", "--progress=none"))
	if m["vertices"] != 6.0 || m["edges"] != 7.0 {
		t.Errorf("%v", m)
	}
}

// Every kind of bad data ends with one line that says where the fault is, the
// documented exit code, and nothing written.
func TestBadData(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		args  string
		want  []string
	}{
		{"missing path", nil, "--data=nowhere", []string{"nowhere", "no such file", "check the path"}},
		{"unknown format", []string{"g.pdf", "%PDF"}, "--data=g.pdf", []string{"g.pdf: its format is not recognised", "planetoid"}},
		{"folder of unknown format", []string{"g/nothing.bin", ""}, "--data=g", []string{"g: its format is not recognised", "edgelist"}},
		{"empty edges", with("g", "edges.csv", ""), "--data=g " + smallSplit, []string{"edges.csv"}},
		{"one column", with("g", "edges.csv", "0,1\n1\n"), "--data=g " + smallSplit, []string{"edges.csv", "2"}},
		{"edge to a missing vertex", with("g", "edges.csv", "0,1\n1,2\n2,17\n"), "check g --vertices=6", []string{"edges.csv", "17"}},
		{"too few feature rows", with("g", "features.csv", "1,0\n1,0\n"), "--data=g " + smallSplit, []string{"features.csv", "2", "6"}},
		{"ragged features", with("g", "features.csv", "1,0\n1,0\n1\n0,1\n0,1\n0,2\n"), "--data=g " + smallSplit, []string{"features.csv", "3"}},
		{"a word as a feature", with("g", "features.csv", "1,0\n1,0\n1,x\n0,1\n0,1\n0,2\n"), "--data=g " + smallSplit, []string{"features.csv", "x"}},
		{"NaN as a feature", with("g", "features.csv", "1,0\n1,0\n1,nan\n0,1\n0,1\n0,2\n"), "--data=g " + smallSplit, []string{"non-finite", "2"}},
		{"too few labels", with("g", "labels.csv", "0\n1\n"), "--data=g " + smallSplit, []string{"labels.csv", "2", "6"}},
		{"no labels", smallGraph("g")[:4], "--data=g " + smallSplit, []string{"label"}},
		{"no split", smallGraph("g"), "--data=g", []string{"no split", "--split=random:60/20/20"}},
		{"too few of a class", smallGraph("g"), "--data=g --split=per-class:20/30", []string{"per-class:20/30", "class 0 has 3 labelled vertices, 50 are needed"}},
		{"per cent that do not add up", smallGraph("g"), "--data=g --split=random:60/20/10", []string{"random:60/20/10", "90"}},
		{"split file with a vertex too many", append(smallGraph("g"), "s.json", `{"train":[0,3],"val":[1],"test":[99]}`), "--data=g --split-file=s.json", []string{"s.json", "99"}},
		{"split file that is no JSON", append(smallGraph("g"), "s.json", "train: 1"), "--data=g --split-file=s.json", []string{"s.json", "byte"}},
		{"split without training vertices", append(smallGraph("g"), "s.json", `{"train":[],"val":[1],"test":[2]}`), "--data=g --split-file=s.json", []string{"train"}},
		{"missing split file", smallGraph("g"), "--data=g --split-file=none.json", []string{"none.json", "no such file"}},
		{"garbage npz", []string{"g.npz", "PK\x03\x04 and no more"}, "--data=g.npz", []string{"g.npz"}},
		{"MatrixMarket cut short", []string{"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n2 3\n"}, "check g.mtx", []string{"g.mtx", "3"}},
		{"MatrixMarket with a vertex too many", []string{"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 9\n"}, "check g.mtx", []string{"g.mtx", "9"}},
		{"METIS graph with too few lines", []string{"g.graph", "3 2\n2\n1 3\n"}, "check g.graph", []string{"g.graph"}},
		{"synth without a kind", nil, "--data=synth:torus,vertices=10", []string{"torus"}},
		{"synth with a strange parameter", nil, "--data=synth:sbm,vertexes=10", []string{"vertexes"}},
		{"gzip cut short", []string{"g.csv.gz", "\x1f\x8b\x08\x00\x00"}, "check g.csv.gz", []string{"g.csv.gz"}},
		{"label beyond the classes", []string{"g/ind.g.graph", "x"}, "check g", []string{"ind.g."}},
		{"prepare into a missing folder", smallGraph("g"), "prepare g -o none/store", []string{"none/store", "no such file"}},
		{"prepare over something else", append(smallGraph("g"), "store/diary.txt", "dear diary"), "prepare g -o store --overwrite", []string{"store"}},
		{"prepare into a file, which is seen before the source is read", []string{"diary.txt", "dear diary"}, "prepare nowhere -o diary.txt", []string{"diary.txt", "exists already"}},
		{"prepare of bad data", with("g", "features.csv", "1,0\n1,0\n1,inf\n0,1\n0,1\n0,2\n"), "prepare g -o store", []string{"non-finite", "--force"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, test.files...)
			before := tree(t, dir)
			r := call(t, dir, nil, strings.Fields(test.args)...)
			if strings.HasPrefix(test.args, "check") {
				r.out = "" // check may print what it found
			}
			wantFailure(t, r, exitFailed, test.want...)
			if after := tree(t, dir); after != before {
				t.Errorf("files before\n%safter\n%s", before, after)
			}
		})
	}
}

// tree lists the files below dir with their sizes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil {
			b.WriteString(path + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBadStores(t *testing.T) {
	good := t.TempDir()
	write(t, good, smallGraph("g")...)
	mustRun(t, good, "prepare", "g", smallSplit, "-o", "store")
	for _, test := range []struct {
		name string
		harm func(dir string) error
		want []string
	}{
		{"newer version", edit("meta.json", `"version": 1`, `"version": 99`), []string{"version 99", "newer program"}},
		{"garbage meta.json", edit("meta.json", `"vertices"`, `"vertices`), []string{"meta.json"}},
		{"another number of vertices", edit("meta.json", `"vertices": 6`, `"vertices": 7`), []string{"6", "7"}},
		{"missing file", func(dir string) error { return os.Remove(filepath.Join(dir, "labels.npy")) }, []string{"labels.npy: the file is missing"}},
		{"file cut short", func(dir string) error { return os.Truncate(filepath.Join(dir, "in_indices.npy"), 130) }, []string{"in_indices.npy"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "store"), os.DirFS(filepath.Join(good, "store"))); err != nil {
				t.Fatal(err)
			}
			if err := test.harm(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
			wantFailure(t, call(t, dir, nil, "--data=store"), exitFailed, append(test.want, "open store store: ")...)
		})
	}
}

// edit replaces text in a file of a folder.
func edit(name, old, new string) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644)
	}
}

func TestUnreadableFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, smallGraph("g")...)
	if err := os.Chmod(filepath.Join(dir, "g"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "g"), 0o755) })
	cmd := command(t, "--data=g")
	if os.Getuid() == 0 { // root may read everything: be nobody
		for _, path := range []string{filepath.Dir(program), dir, filepath.Dir(dir)} {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	wantFailure(t, finish(t, cmd, dir, nil), exitFailed, "g", "permission denied", "give this user the right to read it")
}
