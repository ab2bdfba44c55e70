package main

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dorylus/engine/model"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// ring writes a weighted graph with names, features and labels.
func ring(t *testing.T, dir string) {
	const n = 60
	var edges, features, labels strings.Builder
	edges.WriteString("source,target,weight\n")
	labels.WriteString("id,label\n")
	features.WriteString("id,a,b,c,d,e\n")
	for v := range n {
		id := "v" + strconv.Itoa(v*37%n)
		for _, step := range []int{1, 2, 7} {
			edges.WriteString(id + ",v" + strconv.Itoa((v*37+step)%n) + "," + strconv.Itoa(1+step%2) + "\n")
		}
		labels.WriteString(id + "," + strconv.Itoa(v*37%n/20) + "\n")
		features.WriteString(id)
		for k := range 5 {
			features.WriteString("," + strconv.FormatFloat(math.Sin(float64(v*7+k*k+1)), 'f', 4, 64))
		}
		features.WriteString("\n")
	}
	if err := os.Mkdir(filepath.Join(dir, "g"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "g"), "edges.csv", edges.String(), "labels.csv", labels.String(), "features.csv", features.String())
	mustRun(t, dir, "prepare", "g", "-o", "s", "--split=random:50/25/25")
}

// The embedding put through the last layer alone gives the logits.
func TestEmbeddingTimesLastLayerIsLogits(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir)
	for _, flags := range []string{
		"--model=gcn", "--model=gcn --layers=3 --hidden=2 --norm=layer --residual", "--model=gcn --norm=batch --layers=3", "--model=gcn --hidden=3 --activation=identity",
		"--model=gat", "--model=gat --hidden=1 --layers=3 --out-heads=2 --norm=layer", "--model=sage", "--model=sage --aggregator=max --layers=3 --hidden=3",
		"--model=gin", "--model=gin --hidden=3 --layers=3 --residual", "--model=mlp --hidden=3", "--model=appnp --hidden=3 --layers=2", "--model=sgc",
		"--model=gcn --jumping-knowledge --hidden=3", "--model=gat --jumping-knowledge --hidden=1 --heads=3", "--model=sage --input-dropout=0 --layers=4",
	} {
		t.Run(flags, func(t *testing.T) {
			run := filepath.Join(dir, strconv.Itoa(len(flags))+strings.Map(func(r rune) rune {
				if r == ' ' || r == '=' || r == '-' {
					return '_'
				}
				return r
			}, flags))
			mustRun(t, dir, append(strings.Fields(flags), "--data=s", "--epochs=3", "--out="+run)...)
			st, err := store.Open(filepath.Join(dir, "s"), store.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			checkLastLayer(t, st, run)
		})
	}
}

func checkLastLayer(t *testing.T, st *store.Store, run string) {
	t.Helper()
	point, err := lastCheckpoint(run)
	if err != nil {
		t.Fatal(err)
	}
	state, err := pipeline.Restore(point)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := devices.Open("ref")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := state.Model
	opt := pipeline.PredictOptions{Model: c, Weights: state.BestWeights(false), Store: st, Device: dev, Threads: 2}
	want, err := pipeline.Predict(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	e, err := pipeline.Embed(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	// A model of one layer on the embedding as features.
	alone := *st
	alone.Sparse = nil
	alone.Dense = kernels.FromSlice(e.Rows, e.Cols, make([]float32, e.Rows*e.Cols))
	for r, v := range st.Order {
		copy(alone.Dense.Row(r), e.Row(int(v)))
	}
	alone.Meta.Features = e.Cols
	last := c
	last.Layers, last.Features, last.JumpingKnowledge, last.Residual, last.Norm = 1, e.Cols, false, false, ""
	switch {
	case c.Model == "sgc":
		last.Hops = 0
	case c.JumpingKnowledge:
		last.Model = "mlp"
	}
	opt.Model, opt.Weights, opt.Store = last, ofLastLayer(t, c, last, state.BestWeights(false)), &alone
	got, err := pipeline.Predict(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if c.JumpingKnowledge {
		addLowerLayers(t, c, st, state.BestWeights(false), dev, got)
	}
	for v := range want.Rows {
		for k, x := range want.Row(v) {
			if y := got.Row(v)[k]; math.Abs(float64(x-y)) > 1e-5*(1+math.Abs(float64(x))) {
				t.Fatalf("vertex %d, class %d: the last layer gives %v of the embedding, the model %v", v, k, y, x)
			}
		}
	}
}

// ofLastLayer is the weights of the last layer for last, the model of that layer alone;
// with jumping knowledge those that the logits read the highest layer with.
func ofLastLayer(t *testing.T, c, last model.Config, weights []*kernels.Mat) []*kernels.Mat {
	prog, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := last.Build()
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) string { return name[strings.IndexByte(name, '.'):] } // conv2.lin.weight is conv1's .lin.weight
	own := make([]*kernels.Mat, len(alone.Params))
	for i, p := range prog.Params {
		switch {
		case c.JumpingKnowledge && p.Name != "jump"+strconv.Itoa(c.Layers)+".weight" && p.Name != "jump.bias":
		case c.Model != "sgc" && p.Layer != c.Layers:
		default:
			own[slices.IndexFunc(alone.Params, func(q model.ParamSpec) bool { return part(q.Name) == part(p.Name) })] = weights[i]
		}
	}
	return own
}

// addLowerLayers adds to got what the layers below the highest give the logits of a
// jumping knowledge network of two layers.
func addLowerLayers(t *testing.T, c model.Config, st *store.Store, weights []*kernels.Mat, dev kernels.Device, got *kernels.Mat) {
	prog, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	below := c
	below.Layers = 1
	first, err := below.Build()
	if err != nil {
		t.Fatal(err)
	}
	var own []*kernels.Mat
	for _, p := range first.Params {
		i := slices.IndexFunc(prog.Params, func(q model.ParamSpec) bool { return q.Name == p.Name })
		if p.Name == "jump.bias" { // it has been added already
			own = append(own, kernels.FromSlice(1, c.Classes, make([]float32, c.Classes)))
			continue
		}
		own = append(own, weights[i])
	}
	part, err := pipeline.Predict(context.Background(), pipeline.PredictOptions{Model: below, Weights: own, Store: st, Device: dev, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for v := range got.Rows {
		for k, x := range part.Row(v) {
			got.Row(v)[k] += x
		}
	}
}

func TestEmbeddingFilesFollowTheUsersOrder(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir)
	mustRun(t, dir, "--data=s", "--epochs=3", "--hidden=4", "--out=RUN")
	out := mustRun(t, dir, "predict", "--run=RUN", "-o", "c.csv", "--embeddings=e.csv")
	if !strings.Contains(out, "Wrote e.csv: the last hidden representation of 60 vertices of g, 4 values each") {
		t.Errorf("it says %q", out)
	}
	mustRun(t, dir, "predict", "--run=RUN", "--embeddings=e.npy")
	mustRun(t, dir, "predict", "--run=RUN", "--embeddings=e.parquet")
	classes, vectors := csvOf(t, dir, "c.csv"), csvOf(t, dir, "e.csv")
	npy, err := os.ReadFile(filepath.Join(dir, "e.npy"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(npy[:128]), "(60,4,)") {
		t.Errorf("e.npy begins with %q", npy[:128])
	}
	values := npy[len(npy)-60*4*4:]
	for v := range classes {
		if classes[v][0] != vectors[v][0] {
			t.Fatalf("line %d is of %s in one file and of %s in the other", v, classes[v][0], vectors[v][0])
		}
		for k := 0; v > 0 && k < 4; k++ {
			i := 4 * ((v-1)*4 + k)
			bits := uint32(values[i]) | uint32(values[i+1])<<8 | uint32(values[i+2])<<16 | uint32(values[i+3])<<24
			if want := strconv.FormatFloat(float64(math.Float32frombits(bits)), 'g', -1, 32); vectors[v][1+k] != want {
				t.Fatalf("vertex %s: e_%d is %s in e.csv and %s in e.npy", vectors[v][0], k, vectors[v][1+k], want)
			}
		}
	}
	if parquet, err := os.ReadFile(filepath.Join(dir, "e.parquet")); err != nil || !strings.HasPrefix(string(parquet), "PAR1") {
		t.Errorf("e.parquet begins with %.4q, %v", parquet, err)
	}
	mustRun(t, dir, "--data=s", "--epochs=1", "--layers=1", "--out=ONE")
	wantFailure(t, call(t, dir, nil, "predict", "--run=ONE", "--embeddings=o.csv"), exitFailed, "a gcn of one layer has no hidden representation", "--layers=2")
	if _, err := os.Stat(filepath.Join(dir, "o.csv")); err == nil {
		t.Error("o.csv was written")
	}
}

func csvOf(t *testing.T, dir, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
