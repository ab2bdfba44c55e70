package dataset

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"
)

// survive opens src and holds the reader to its promises: an error or a sound graph,
// no crash, and no more memory than the input can justify.
func survive(t *testing.T, files map[string]string, src string, opt Options) {
	t.Helper()
	size := 0
	for _, text := range files {
		size += len(text)
	}
	opt.FS = folder(files)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	raw, err := Open(context.Background(), src, opt)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20+4096*uint64(size) {
		t.Fatalf("%d bytes of input made it allocate %d", size, used)
	}
	if err != nil {
		if len(err.Error()) < 10 {
			t.Errorf("an error without a message: %q", err)
		}
		return
	}
	for _, f := range Check(raw) {
		switch f.Code {
		case "shape-mismatch", "edge-out-of-range", "split-out-of-range", "split-repeats", "label-out-of-range":
			t.Errorf("the reader let through %v", f)
		}
	}
	if raw.Sparse != nil {
		checkSorted(t, raw)
	}
}

func FuzzPlanetoid(f *testing.F) {
	names := slices.Sorted(maps.Keys(tinyPlanetoid()))
	for i, name := range names {
		f.Add([]byte(tinyPlanetoid()[name]), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		files := tinyPlanetoid()
		files[names[int(which)%len(names)]] = string(data)
		survive(t, files, "d", Options{})
	})
}

func FuzzNPZ(f *testing.F) {
	f.Add([]byte(zipOf(tinyBench())))
	f.Add([]byte(zipOf(tinyHetero())))
	f.Fuzz(func(t *testing.T, data []byte) {
		survive(t, map[string]string{"a.npz": string(data)}, "d/a.npz", Options{})
	})
}

// FuzzNPZMember changes one member and wraps it whole, past the zip's checksums.
func FuzzNPZMember(f *testing.F) {
	names := slices.Sorted(maps.Keys(tinyBench()))
	for i, name := range names {
		f.Add([]byte(tinyBench()[name]), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		members := tinyBench()
		members[names[int(which)%len(names)]] = string(data)
		survive(t, map[string]string{"a.npz": zipOf(members)}, "d/a.npz", Options{})
	})
}

func FuzzEdgeList(f *testing.F) {
	for _, s := range []string{"id_1,id_2\n0,1\n1,2\n", "# c\n0\t1\t0.5\n7\t1\t-2\n", "a b\nb c\n", "\"x,1\",y\n", "1,9000000000000000000\n"} {
		f.Add([]byte(s), byte(0))
		f.Add([]byte(gz(s)), byte(1))
		f.Add([]byte(zst(s)), byte(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		name := []string{"e.csv", "e.csv.gz", "e.csv.zst"}[kind%3]
		survive(t, map[string]string{name: string(data)}, "d/"+name, Options{Names: kind&4 != 0})
	})
}

func FuzzSidecars(f *testing.F) {
	names := []string{"features.npy", "features.csv", "features.npz", "labels.npy", "labels.csv", "train.txt", "test_mask.npy", "splits.json", "features.json"}
	for i, s := range []string{
		npyBytes("<f4", "(3, 1)", []float32{1, 2, 3}), "id,f\n0,1\n1,2\n2,3\n", zipOf(map[string]string{"x": npyBytes("<f8", "(3, 1)", []float64{1, 2, 3})}),
		vector("<i8", 3, []int64{0, 1, 0}), "id,label\n0,cat\n2,dog\n", "0\n1\n", vector("|b1", 3, []bool{false, false, true}),
		`{"splits":[{"train":[0],"val":[1],"test":[2]}]}`, `{"0": [1, 2], "2": [0]}`,
	} {
		f.Add([]byte(s), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		survive(t, map[string]string{"edges.csv": "0,1\n1,2\n", names[int(which)%len(names)]: string(data)}, "d", Options{})
	})
}

func FuzzMatrixMarket(f *testing.F) {
	for _, s := range []string{
		"%%MatrixMarket matrix coordinate real general\n%c\n3 3 2\n1 2 0.5\n3 1 2\n",
		"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n",
		"%%MatrixMarket matrix array integer skew-symmetric\n2 2\n7\n",
		"%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1e400\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		survive(t, map[string]string{"m.mtx": string(data)}, "d/m.mtx", Options{})
	})
}

func FuzzMETIS(f *testing.F) {
	for _, s := range []string{"3 2\n2 3\n1\n1\n", "% c\n2 1 11 2\n1 1 2 5\n1 1 1 5\n", "2 1 001\n2 5\n1 5\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		survive(t, map[string]string{"g.graph": string(data)}, "d/g.graph", Options{})
	})
}

func FuzzSynthSpec(f *testing.F) {
	f.Add("synth:sbm,vertices=100,degree=4,classes=2,features=3,seed=1")
	f.Add("synth:rmat,scale=5,degree=3,noise=2,intra=0.1,labelled=0.5")
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := parseSynth(spec)
		if err != nil || s.feasible() != nil || s.n > 1000 || s.degree > 50 || s.features > 50 {
			return
		}
		if raw, err := Synth(context.Background(), spec); err == nil && s.labelled > 0.5 {
			for _, f := range Check(raw) {
				if f.Code == "edge-out-of-range" || f.Code == "duplicate-edges" || f.Code == "self-loops" {
					t.Errorf("%s: %v", spec, f)
				}
			}
		}
	})
}
